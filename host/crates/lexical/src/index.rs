//! An index that finds the documents that some words are about.
//!
//! BM25 over several fields: a rare word counts more than a common one, a word in a short text more
//! than one in a long text, and each field has a weight. Strangers write the documents, and some
//! would like to be found always. Therefore lengths are compared with fixed ones, which no document
//! can shift, a word counts once however often it stands in a field, and only the beginning of a
//! long field counts at all.

use std::{cmp::Reverse, collections::HashMap};

use crate::words::words;

/// How soon it stops to count that a word stands in several fields. SQLite's `bm25()`, which ranks
/// what the store finds, has the same constant.
const SATURATION: f64 = 1.2;

/// How much the length of a text counts, from 0 to 1. SQLite's `bm25()` has the same constant.
const LENGTH_WEIGHT: f64 = 0.75;

/// Longest query, in bytes: some sentences.
const QUERY_BYTES_MAX: usize = 1024;

/// Most different words of a query.
const QUERY_WORDS_MAX: usize = 32;

/// How much a field counts.
#[derive(Debug, Clone, Copy)]
pub struct Weight {
    /// How much a word in it counts.
    pub boost: f64,
    /// How many words such a field usually has.
    pub words_usual: f64,
    /// How many words of it count.
    pub words_max: usize,
}

/// A document that has a word of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// The document's number, in the order in which the documents were added.
    pub document: usize,
    /// How well it fits; only the ratio to other scores of the same query means anything.
    pub score: f64,
}

/// Knows in which documents each word stands.
#[derive(Debug, Default)]
pub struct Index {
    places: HashMap<String, Vec<Place>>,
    documents: usize,
}

/// That a word stands in a document, and how much it counts there.
#[derive(Debug)]
struct Place {
    document: usize,
    weight: f64,
}

impl Index {
    /// Adds a document: the texts of each of its fields.
    pub fn add<'a>(&mut self, fields: impl IntoIterator<Item = (Weight, Vec<&'a str>)>) {
        for (weight, texts) in fields {
            self.add_field(weight, &texts);
        }
        self.documents += 1;
    }

    fn add_field(&mut self, weight: Weight, texts: &[&str]) {
        let document = self.documents;
        let words = texts.iter().flat_map(|text| words(text));
        let mut words: Vec<String> = words.take(weight.words_max).collect();
        let length = words.len() as f64 / weight.words_usual;
        let weight = weight.boost / (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        words.sort_unstable();
        words.dedup();
        for word in words {
            let places = self.places.entry(word).or_default();
            match places.last_mut() {
                Some(place) if place.document == document => place.weight += weight,
                _ => places.push(Place { document, weight }),
            }
        }
    }

    /// Returns the documents that have a word of the query, the best first; of equals, the one that
    /// was added first.
    pub fn find(&self, query: &str) -> Vec<Match> {
        let mut scores = vec![0.0; self.documents];
        for places in query_words(query).iter().filter_map(|word| self.places.get(word)) {
            let rarity = self.rarity(places.len());
            for Place { document, weight } in places {
                scores[*document] += rarity * weight / (SATURATION + weight);
            }
        }
        let scored = scores.into_iter().enumerate();
        let matches = scored.map(|(document, score)| Match { document, score });
        let mut found: Vec<Match> = matches.filter(|found| found.score > 0.0).collect();
        // Sorting is stable; scores are positive, so their bits order them as their values do.
        found.sort_by_key(|found| Reverse(found.score.to_bits()));
        found
    }

    fn rarity(&self, documents_with_it: usize) -> f64 {
        let with_it = documents_with_it as f64;
        let without_it = (self.documents - documents_with_it) as f64;
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
