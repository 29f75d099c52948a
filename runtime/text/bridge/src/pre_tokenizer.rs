//! GPT-2's split of text into words, in linear time. The pattern is the one of `tokenizers`'
//! ByteLevel,
//!   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! but its regex engine gives up, silently, on a run of 1e6 spaces. Here it is a scanner: every
//! character is of one class, and a run of one class is a word.

use regex_syntax::hir::{Class as HirClass, HirKind};
use std::sync::LazyLock;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::tokenizer::pattern::Pattern;
use tokenizers::{Offsets, PreTokenizedString, PreTokenizer, Result, SplitDelimiterBehavior};

/// ByteLevel(add_prefix_space=False), with each digit on its own before if `digits`.
pub struct Gpt2 {
    pub digits: bool,
}

impl PreTokenizer for Gpt2 {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> Result<()> {
        if self.digits {
            Digits::new(true).pre_tokenize(text)?;
        }
        text.split(|_, part| part.split(Words, SplitDelimiterBehavior::Isolated))?;
        ByteLevel::new(false, false, false).pre_tokenize(text)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Other,
    Letter,
    Number,
    Space,
}

/// Class of each code point.
static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let mut classes = vec![Class::Other; char::MAX as usize + 1];
    for (pattern, class) in [
        (r"\p{L}", Class::Letter),
        (r"\p{N}", Class::Number),
        (r"\s", Class::Space),
    ] {
        let hir = regex_syntax::parse(pattern).expect("a constant pattern");
        let HirKind::Class(HirClass::Unicode(ranges)) = hir.kind() else {
            unreachable!("a Unicode class");
        };
        for range in ranges.iter() {
            classes[range.start() as usize..=range.end() as usize].fill(class);
        }
    }
    classes
});

fn class_of(c: char) -> Class {
    CLASSES[c as usize]
}

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// Bytes of the word that `text`, which is not empty, begins with.
fn word_size(text: &str) -> usize {
    if let Some(word) = CONTRACTIONS.iter().find(|c| text.starts_with(**c)) {
        return word.len();
    }
    let run = |from: usize, class: Class| {
        let end = text[from..]
            .char_indices()
            .find(|&(_, c)| class_of(c) != class);
        end.map_or(text.len(), |(i, _)| from + i)
    };
    let class_at = |at: usize| text[at..].chars().next().map(class_of);
    let first = class_at(0).unwrap_or(Class::Other);
    if first != Class::Space {
        return run(0, first);
    }
    if text.starts_with(' ') {
        if let Some(class) = class_at(1).filter(|&class| class != Class::Space) {
            return run(1, class);
        }
    }
    // A run of spaces leaves its last one to the word behind it, if there is one and it is not all.
    let end = run(0, Class::Space);
    if end == text.len() {
        return end;
    }
    let last = text[..end].char_indices().next_back().map_or(0, |(i, _)| i);
    if last == 0 {
        end
    } else {
        last
    }
}

struct Words;

impl Pattern for Words {
    fn find_matches(&self, text: &str) -> Result<Vec<(Offsets, bool)>> {
        let mut words = Vec::with_capacity(text.len() / 4 + 1);
        let mut at = 0;
        while at < text.len() {
            let end = at + word_size(&text[at..]);
            words.push(((at, end), true));
            at = end;
        }
        if words.is_empty() {
            words.push(((0, 0), false));
        }
        Ok(words)
    }
}
