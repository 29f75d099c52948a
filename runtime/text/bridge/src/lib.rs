//! The exports of quire_text_bridge.h. Each one checks its arguments, runs inside `guard`, and
//! hands owned memory over as raw parts; all work is done by the modules, in safe Rust.
#![deny(unsafe_op_in_unsafe_fn)]

mod chat_template;
mod ffi;
mod pre_tokenizer;
mod python_json;
mod tokenizer;

use chat_template::Template;
use ffi::{guard, Bytes, Code, Failure, Ids, Slice};
use tokenizer::BpeTokenizer;

#[repr(C)]
pub struct Vocab {
    pre_tokenizer: Slice,
    pieces: *const Slice,
    piece_count: usize,
    merges: *const Slice,
    merge_count: usize,
}

#[repr(C)]
pub struct Render {
    context_json: Slice,
    max_steps: u64,
    max_output_bytes: usize,
}

#[no_mangle]
pub extern "C" fn quire_bridge_bytes_free(bytes: Bytes) {
    drop(bytes.into_vec());
}

#[no_mangle]
pub extern "C" fn quire_bridge_ids_free(ids: Ids) {
    drop(ids.into_vec());
}

#[no_mangle]
pub extern "C" fn quire_bridge_pre_tokenizers() -> Slice {
    Slice::from_static(tokenizer::PRE_TOKENIZERS)
}

/// # Safety
/// Pointers are valid for the call, as quire_text_bridge.h says; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_tokenizer_new(
    vocab: *const Vocab,
    out: *mut *mut BpeTokenizer,
    error: *mut Bytes,
) -> Code {
    guard(error, || {
        let vocab = unsafe { &*vocab };
        let pieces = unsafe { ffi::array(vocab.pieces, vocab.piece_count) };
        let merges = unsafe { ffi::array(vocab.merges, vocab.merge_count) };
        let pieces = pieces.iter().map(|p| unsafe { p.bytes() });
        let merges = merges.iter().map(|m| unsafe { m.bytes() });
        let name = unsafe { vocab.pre_tokenizer.str("pre-tokenizer name")? };
        let tokenizer = BpeTokenizer::new(name, pieces, merges)?;
        unsafe { out.write(Box::into_raw(Box::new(tokenizer))) };
        Ok(())
    })
}

/// # Safety
/// `tokenizer` came from quire_bridge_tokenizer_new, or is null; it is not used again.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_tokenizer_free(tokenizer: *mut BpeTokenizer) {
    if !tokenizer.is_null() {
        drop(unsafe { Box::from_raw(tokenizer) });
    }
}

/// # Safety
/// As quire_bridge_tokenizer_new.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_encode(
    tokenizer: *const BpeTokenizer,
    text: Slice,
    out: *mut Ids,
    error: *mut Bytes,
) -> Code {
    guard(error, || {
        let ids = unsafe { &*tokenizer }.encode(unsafe { text.str("text")? })?;
        unsafe { out.write(Ids::from_vec(ids)) };
        Ok(())
    })
}

/// # Safety
/// As quire_bridge_tokenizer_new.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_template_new(
    source: Slice,
    out: *mut *mut Template,
    error: *mut Bytes,
) -> Code {
    guard(error, || {
        let template = Template::new(unsafe { source.str("chat template")? })?;
        unsafe { out.write(Box::into_raw(Box::new(template))) };
        Ok(())
    })
}

/// # Safety
/// `template` came from quire_bridge_template_new, or is null; it is not used again.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_template_free(template: *mut Template) {
    if !template.is_null() {
        drop(unsafe { Box::from_raw(template) });
    }
}

/// # Safety
/// As quire_bridge_tokenizer_new.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_render(
    template: *const Template,
    render: *const Render,
    out: *mut Bytes,
    error: *mut Bytes,
) -> Code {
    guard(error, || {
        let render = unsafe { &*render };
        let context = unsafe { render.context_json.str("template variables")? };
        if render.max_steps == 0 || render.max_steps > i64::MAX as u64 {
            return Err(Failure::invalid("max_steps is out of range"));
        }
        let text =
            unsafe { &*template }.render(context, render.max_steps, render.max_output_bytes)?;
        unsafe { out.write(Bytes::from_vec(text.into_bytes())) };
        Ok(())
    })
}

/// # Safety
/// `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn quire_bridge_panic(error: *mut Bytes) -> Code {
    guard(error, || panic!("asked for"))
}
