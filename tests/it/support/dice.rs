//! Random-looking numbers that are the same in each run.

/// A small generator of numbers that look random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// The next number below a limit.
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}
