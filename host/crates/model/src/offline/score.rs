//! Which tool a sentence asks for, if any.
//!
//! Every word of the sentence counts as much as it weighs in the tool's [`Profile`], times how rare
//! it is among the tools at hand. Things that can be seen without words, such as a path or an
//! address, count for the tools that take one. The best tool is taken only when the sentence speaks
//! of what the tool is for; a few words in common are not enough.

use std::collections::{HashMap, HashSet};

use super::fill::params::Sort;
use super::profile::Profile;
use super::stem::is_stop_word;
use super::tokens::{Kind, Sentence};
use crate::chat::ToolDefinition;

/// How many different words of a sentence are compared. Nobody needs more to say what to do; the
/// rest of a long text is content.
const WORDS_MAX: usize = 200;

/// What a fitting path, address or duration counts, in words of a description.
const SIGHT: f64 = 2.0;

/// What remains of a score when the sentence holds a path, an address or a duration, but not the
/// one that the tool needs.
const MISSING: f64 = 0.6;

/// What remains of a synonym where another tool is called by the word itself.
const NEIGHBOUR: f64 = 0.5;

/// Least share of the sentence's words that a tool must know when none of its names is in it.
const KNOWN_SHARE_MIN: f64 = 0.6;

/// All tools, ready to be compared with sentences.
#[derive(Debug)]
pub(super) struct Catalogue<'a> {
    profiles: Vec<Profile<'a>>,
    /// In how many tools each stem stands.
    tools_with: HashMap<String, usize>,
    /// The stems by which tools are called.
    names: HashSet<String>,
}

/// The tool that a sentence asks for.
#[derive(Debug)]
pub(super) struct Match<'a> {
    pub(super) tool: &'a ToolDefinition,
    /// For each word of the sentence, whether it named the tool.
    pub(super) naming: Vec<bool>,
}

/// What can be seen in a sentence without understanding its words.
#[derive(Debug, Clone, Copy, Default)]
struct Sights {
    url: bool,
    path: bool,
    duration: bool,
    moment: bool,
}

impl<'a> Catalogue<'a> {
    pub(super) fn new(tools: &'a [ToolDefinition]) -> Self {
        let profiles: Vec<Profile<'a>> = tools.iter().map(Profile::new).collect();
        let mut tools_with = HashMap::new();
        for stem in profiles.iter().flat_map(Profile::words) {
            *tools_with.entry(stem.to_owned()).or_insert(0) += 1;
        }
        let names = profiles.iter().flat_map(|profile| profile.telling.iter().cloned()).collect();
        Self { profiles, tools_with, names }
    }

    /// Returns the tool that fits best; of equals the first.
    pub(super) fn best(&self, sentence: &Sentence<'_>) -> Option<Match<'a>> {
        let words = telling_words(sentence);
        let sights = Sights::of(sentence);
        let mut best: Option<(f64, &Profile<'a>)> = None;
        for profile in &self.profiles {
            let score = self.score(profile, &words, sights);
            if score > best.map_or(0.0, |(most, _)| most) {
                best = Some((score, profile));
            }
        }
        let (_, profile) = best?;
        is_meant(profile, &words, sights).then(|| Match::new(profile, sentence))
    }

    fn score(&self, profile: &Profile<'_>, words: &[&str], sights: Sights) -> f64 {
        let known: f64 =
            words.iter().map(|word| self.rarity(word) * self.weight(profile, word)).sum();
        let named = named_share(profile, words);
        let (fitting, missing) = sights.against(profile);
        let score = known + named + SIGHT * f64::from(fitting);
        score * MISSING.powi(missing)
    }

    /// What a word says about a tool. Where a tool is called by that very word, it says less about
    /// others: "remind me" means the timer only as long as there are no reminders.
    fn weight(&self, profile: &Profile<'_>, stem: &str) -> f64 {
        let (own, weight) = (profile.own_weight(stem), profile.weight(stem));
        if self.names.contains(stem) { own.max(weight * NEIGHBOUR) } else { weight }
    }

    /// 1 for a word of all tools, more for one that few have.
    fn rarity(&self, stem: &str) -> f64 {
        let tools = self.tools_with.get(stem).copied().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "numbers of tools are small")]
        let ratio = (self.profiles.len() + 1) as f64 / (tools + 1) as f64;
        1.0 + ratio.ln()
    }
}

impl<'a> Match<'a> {
    /// A word names the tool only once: in "play play that funky music" the second is content.
    fn new(profile: &Profile<'a>, sentence: &Sentence<'_>) -> Self {
        let mut named: Vec<&str> = Vec::new();
        let naming = sentence.words.iter().map(|word| {
            let names = word.kind == Kind::Word
                && named.len() < WORDS_MAX
                && !named.contains(&word.stem.as_str())
                && (profile.is_telling(&word.stem) || profile.name.contains(&word.stem));
            if names {
                named.push(&word.stem);
            }
            names
        });
        Self { tool: profile.tool, naming: naming.collect() }
    }
}

impl Sights {
    fn of(sentence: &Sentence<'_>) -> Self {
        let has = |kinds: &[Kind]| sentence.words.iter().any(|word| kinds.contains(&word.kind));
        Self {
            url: has(&[Kind::Url, Kind::Dotted]),
            path: has(&[Kind::Path, Kind::Dotted]),
            duration: super::fill::duration::find(sentence, &[]).is_some(),
            moment: super::fill::moment::find(sentence, &[]).is_some(),
        }
    }

    /// Returns how many of a tool's parameters have what they need in sight, and how many required
    /// ones do not although something is.
    fn against(self, profile: &Profile<'_>) -> (i32, i32) {
        let (mut fitting, mut missing) = (0, 0);
        for param in &profile.params {
            let is_there = match param.sort {
                Sort::Url => self.url,
                Sort::Path => self.path,
                Sort::Duration(_) => self.duration,
                Sort::Moment => self.moment,
                _ => continue,
            };
            fitting += i32::from(is_there);
            missing += i32::from(param.required && !is_there);
        }
        let something = self.url || self.path || self.duration;
        (fitting, if something { missing } else { 0 })
    }
}

/// Returns the stems that can tell tools apart, each once.
fn telling_words<'s>(sentence: &'s Sentence<'_>) -> Vec<&'s str> {
    let mut words: Vec<&str> = Vec::new();
    let plain = sentence.words.iter().filter(|word| word.kind == Kind::Word);
    for word in plain.filter(|word| !is_stop_word(&word.lower)) {
        if words.len() < WORDS_MAX && !words.contains(&word.stem.as_str()) {
            words.push(&word.stem);
        }
    }
    words
}

/// Returns which share of the tool's own name the sentence says.
fn named_share(profile: &Profile<'_>, words: &[&str]) -> f64 {
    let said = |own: &&String| words.iter().any(|word| super::synonyms::alike(own, word));
    #[expect(clippy::cast_precision_loss, reason = "names have few words")]
    let share = profile.name.iter().filter(said).count() as f64 / profile.name.len().max(1) as f64;
    share
}

/// True when the sentence speaks of what the tool is for.
fn is_meant(profile: &Profile<'_>, words: &[&str], sights: Sights) -> bool {
    let telling = words.iter().any(|word| profile.is_telling(word));
    let whole_name = !profile.name.is_empty() && named_share(profile, words) >= 1.0;
    if telling || whole_name {
        return true;
    }
    let known = words.iter().filter(|word| profile.weight(word) > 0.0).count();
    let (fitting, missing) = sights.against(profile);
    #[expect(clippy::cast_precision_loss, reason = "sentences have few words")]
    let share = known as f64 / words.len().max(1) as f64;
    let enough = known >= 2 || (known == 1 && fitting > 0 && missing == 0);
    enough && share >= KNOWN_SHARE_MIN
}
