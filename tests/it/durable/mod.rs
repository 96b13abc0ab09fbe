//! What must survive faults: kills, full disks, folders that nobody may write to, many hosts at
//! once. Whatever happens, nothing is done without its record, and nothing that was told is lost.

mod disks;
mod faults;
mod hosts;
mod kills;
mod stage;
