//! A `tokenizers` object made of a vocabulary in the byte-level alphabet. Control tokens are not
//! its business: the caller splits the text at them, and their pieces come empty.

use crate::ffi::Failure;
use crate::pre_tokenizer::Gpt2;
use tokenizers::models::bpe::BPE;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, TokenizerImpl};

pub const PRE_TOKENIZERS: &str = "gpt-2 smollm";

pub struct BpeTokenizer {
    tokenizer: TokenizerImpl<BPE, NormalizerWrapper, Gpt2, PostProcessorWrapper, DecoderWrapper>,
}

fn pre_tokenizer(name: &str) -> Result<Gpt2, Failure> {
    match name {
        "gpt-2" => Ok(Gpt2 { digits: false }),
        "smollm" => Ok(Gpt2 { digits: true }),
        _ => Err(Failure::invalid(format!(
            "pre-tokenizer \"{}\" is not known; known: {}",
            name.escape_default(),
            PRE_TOKENIZERS.replace(' ', ", ")
        ))),
    }
}

impl BpeTokenizer {
    pub fn new<'a>(
        pre_tokenizer_name: &str,
        pieces: impl ExactSizeIterator<Item = &'a [u8]>,
        merges: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Self, Failure> {
        let pre = pre_tokenizer(pre_tokenizer_name)?;
        let mut vocab = ahash::AHashMap::with_capacity(pieces.len());
        for (id, piece) in pieces.enumerate() {
            // Pieces that no text can reach stay out: control tokens (empty here) and invalid
            // UTF-8. Of equal pieces the first wins.
            if let (false, Ok(piece)) = (piece.is_empty(), std::str::from_utf8(piece)) {
                vocab.entry(piece.to_owned()).or_insert(id as u32);
            }
        }
        let mut pairs = Vec::with_capacity(merges.len());
        for (rank, merge) in merges.enumerate() {
            let pair = std::str::from_utf8(merge)
                .ok()
                .and_then(|m| m.split_once(' '));
            let (left, right) = pair
                .filter(|(l, r)| !l.is_empty() && !r.is_empty() && !r.contains(' '))
                .ok_or_else(|| {
                    Failure::invalid(format!("merge {rank} is not two pieces and a space"))
                })?;
            pairs.push((left.to_owned(), right.to_owned()));
        }
        let bpe = BPE::builder()
            .vocab_and_merges(vocab, pairs)
            .build()
            .map_err(|e| Failure::invalid(format!("merges do not fit the vocabulary: {e}")))?;
        let mut tokenizer = TokenizerImpl::new(bpe);
        tokenizer.with_pre_tokenizer(Some(pre));
        Ok(BpeTokenizer { tokenizer })
    }

    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|_| Failure::new(crate::ffi::Code::Internal, "encode failed"))?;
        Ok(encoding.get_ids().to_vec())
    }
}
