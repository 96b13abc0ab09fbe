//! Finds the tools that some words are about.
//!
//! BM25 over several fields: a rare word says more than a common one, a word in a name more than one
//! in a description, a word in a short text more than one in a long text. Authors of plugins write
//! what is searched, and some would like to be found always; so lengths are compared with fixed
//! ones, which no plugin can shift, a word counts once however often it stands in a text, and only
//! the beginning of a long text counts at all.

use std::{cmp::Reverse, collections::HashMap};

use sallyport_model::ToolDefinition;

use super::{fields::Fields, words::words};

/// How soon it stops to count that a word stands in several fields.
const SATURATION: f64 = 1.2;

/// How much the length of a text counts, from 0 to 1.
const LENGTH_WEIGHT: f64 = 0.75;

/// Longest query, in bytes: some sentences.
const QUERY_BYTES_MAX: usize = 1024;

/// Most different words of a query.
const QUERY_WORDS_MAX: usize = 32;

/// What a field counts for.
struct Weight {
    /// How much a word in it counts.
    boost: f64,
    /// How many words such a field usually has.
    words_usual: f64,
    /// How many words of it count.
    words_max: usize,
}

const NAME: Weight = Weight { boost: 3.0, words_usual: 4.0, words_max: 40 };
const DESCRIPTION: Weight = Weight { boost: 1.0, words_usual: 30.0, words_max: 200 };
const PARAMETER_NAMES: Weight = Weight { boost: 1.0, words_usual: 8.0, words_max: 100 };
const PARAMETER_DESCRIPTIONS: Weight = Weight { boost: 0.5, words_usual: 40.0, words_max: 300 };

/// Knows in which tools each word stands.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashMap<String, Vec<Place>>,
    tools: usize,
}

/// That a word stands in a tool, and what it counts there.
#[derive(Debug)]
struct Place {
    tool: usize,
    weight: f64,
}

impl Index {
    pub(super) fn new(tools: &[ToolDefinition]) -> Self {
        let mut index = Self { tools: tools.len(), ..Self::default() };
        for (tool, definition) in tools.iter().enumerate() {
            let fields = Fields::of(definition);
            index.add(tool, &NAME, [fields.name]);
            index.add(tool, &DESCRIPTION, [fields.description]);
            index.add(tool, &PARAMETER_NAMES, fields.parameter_names);
            index.add(tool, &PARAMETER_DESCRIPTIONS, fields.parameter_descriptions);
        }
        index
    }

    /// Adds one field of a tool. The tools come in their order.
    fn add<'a>(&mut self, tool: usize, weight: &Weight, texts: impl IntoIterator<Item = &'a str>) {
        let words = texts.into_iter().flat_map(words);
        let mut words: Vec<String> = words.take(weight.words_max).collect();
        let length = words.len() as f64 / weight.words_usual;
        let weight = weight.boost / (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        words.sort_unstable();
        words.dedup();
        for word in words {
            let places = self.places.entry(word).or_default();
            match places.last_mut() {
                Some(place) if place.tool == tool => place.weight += weight,
                _ => places.push(Place { tool, weight }),
            }
        }
    }

    /// Returns the tools that have a word of the query, the best first; of equals, the first of the
    /// list first.
    pub(super) fn find(&self, query: &str) -> Vec<usize> {
        let mut scores = vec![0.0; self.tools];
        for places in query_words(query).iter().filter_map(|word| self.places.get(word)) {
            let rarity = self.rarity(places.len());
            for Place { tool, weight } in places {
                scores[*tool] += rarity * weight / (SATURATION + weight);
            }
        }
        let mut found: Vec<usize> = (0..self.tools).filter(|tool| scores[*tool] > 0.0).collect();
        // Sorting is stable; scores are positive, so their bits order them as their values do.
        found.sort_by_key(|tool| Reverse(scores[*tool].to_bits()));
        found
    }

    fn rarity(&self, tools_with_it: usize) -> f64 {
        let (with_it, without_it) = (tools_with_it as f64, (self.tools - tools_with_it) as f64);
        (1.0 + (without_it + 0.5) / (with_it + 0.5)).ln()
    }
}

fn query_words(query: &str) -> Vec<String> {
    let query = &query[..query.floor_char_boundary(QUERY_BYTES_MAX)];
    let mut known = Vec::new();
    for word in words(query) {
        if known.len() < QUERY_WORDS_MAX && !known.contains(&word) {
            known.push(word);
        }
    }
    known
}
