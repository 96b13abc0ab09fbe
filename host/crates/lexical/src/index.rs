//! A search index that ranks documents by the words of a query.
//!
//! It uses BM25 over several fields: a rare word scores higher than a common one, a word in a short
//! text higher than one in a long text, and each field has a weight. Documents are untrusted, and
//! some authors want theirs to match every query. Therefore lengths are compared with constants
//! that no document can shift, a word counts once per field, and only the beginning of a long field
//! counts.

use std::{cmp::Reverse, collections::HashMap};

use crate::words::split_into_words;

/// How quickly further fields with the same word stop adding to its score. SQLite's `bm25()`, which
/// ranks the store's results, uses the same constant.
const SATURATION: f64 = 1.2;

/// The influence of a text's length, from 0 to 1. SQLite's `bm25()` uses the same constant.
const LENGTH_WEIGHT: f64 = 0.75;

/// Maximum length of a query, in bytes: a few sentences.
const QUERY_BYTES_MAX: usize = 1024;

/// Maximum number of distinct words in a query.
const QUERY_WORDS_MAX: usize = 32;

/// The weight of a field.
#[derive(Debug, Clone, Copy)]
pub struct FieldWeight {
    /// The factor for each word in the field.
    pub boost: f64,
    /// The usual length of the field, in words.
    pub words_usual: f64,
    /// Maximum number of words that count.
    pub words_max: usize,
}

/// A document that contains a word of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LexicalMatch {
    /// The document's position, in the order in which documents were added, from 0.
    pub document: usize,
    /// The score. Only its ratio to other scores of the same query is meaningful.
    pub score: f64,
}

/// Maps each word to the documents that contain it.
#[derive(Debug, Default)]
pub struct LexicalIndex {
    places: HashMap<String, Vec<WordOccurrence>>,
    documents: usize,
}

/// A document that contains a word, with the word's weight there.
#[derive(Debug)]
struct WordOccurrence {
    document: usize,
    weight: f64,
}

impl LexicalIndex {
    /// Adds a document: for each field, its weight and its texts.
    pub fn add_document<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (FieldWeight, Vec<&'a str>)>,
    ) {
        for (weight, texts) in fields {
            self.add_field(weight, &texts);
        }
        self.documents += 1;
    }

    fn add_field(&mut self, weight: FieldWeight, texts: &[&str]) {
        let document = self.documents;
        let words = texts.iter().flat_map(|text| split_into_words(text));
        let mut words: Vec<String> = words.take(weight.words_max).collect();
        let length = words.len() as f64 / weight.words_usual;
        let weight = weight.boost / (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        words.sort_unstable();
        words.dedup();
        for word in words {
            let places = self.places.entry(word).or_default();
            match places.last_mut() {
                Some(place) if place.document == document => place.weight += weight,
                _ => places.push(WordOccurrence { document, weight }),
            }
        }
    }

    /// Returns the documents that contain a word of the query, the best first. Documents with equal
    /// scores keep the order in which they were added.
    pub fn find_documents(&self, query: &str) -> Vec<LexicalMatch> {
        let mut scores = vec![0.0; self.documents];
        for places in query_words(query).iter().filter_map(|word| self.places.get(word)) {
            let rarity = self.inverse_document_frequency(places.len());
            for WordOccurrence { document, weight } in places {
                scores[*document] += rarity * weight / (SATURATION + weight);
            }
        }
        let scored = scores.into_iter().enumerate();
        let matches = scored.map(|(document, score)| LexicalMatch { document, score });
        let mut found: Vec<LexicalMatch> = matches.filter(|found| found.score > 0.0).collect();
        // The sort is stable. Scores are positive, so their bits have the same order as their
        // values.
        found.sort_by_key(|found| Reverse(found.score.to_bits()));
        found
    }

    fn inverse_document_frequency(&self, documents_with_it: usize) -> f64 {
        let with_it = documents_with_it as f64;
        let without_it = (self.documents - documents_with_it) as f64;
        (1.0 + (without_it + 0.5) / (with_it + 0.5)).ln()
    }
}

fn query_words(query: &str) -> Vec<String> {
    let query = &query[..query.floor_char_boundary(QUERY_BYTES_MAX)];
    let mut known = Vec::new();
    for word in split_into_words(query) {
        if known.len() < QUERY_WORDS_MAX && !known.contains(&word) {
            known.push(word);
        }
    }
    known
}
