//! Types that cross the boundary, and the guard around every export.

use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    Ok = 0,
    Invalid = 1,
    Raised = 2,
    Budget = 3,
    Internal = 4,
}

#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
        }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Failure::new(Code::Invalid, message)
    }
}

/// Borrowed bytes of the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    data: *const u8,
    size: usize,
}

impl Slice {
    pub fn from_static(s: &'static str) -> Self {
        Slice {
            data: s.as_ptr(),
            size: s.len(),
        }
    }

    /// # Safety
    /// `data` points to `size` readable bytes that outlive the use.
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        unsafe { array(self.data, self.size) }
    }

    /// # Safety
    /// As `bytes`.
    pub unsafe fn str<'a>(&self, what: &str) -> Result<&'a str, Failure> {
        std::str::from_utf8(unsafe { self.bytes() }).map_err(|e| {
            Failure::invalid(format!(
                "{what} is not valid UTF-8 at byte {}",
                e.valid_up_to()
            ))
        })
    }
}

/// # Safety
/// `data` points to `count` readable values, or `count` is 0.
pub unsafe fn array<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, count) }
}

/// A vector handed to the caller as raw parts; `into_vec` takes it back.
#[repr(C)]
pub struct Owned<T> {
    data: *mut T,
    size: usize,
    capacity: usize,
}

pub type Bytes = Owned<u8>;
pub type Ids = Owned<u32>;

impl<T> Owned<T> {
    pub fn from_vec(v: Vec<T>) -> Self {
        let mut v = std::mem::ManuallyDrop::new(v);
        Owned {
            data: v.as_mut_ptr(),
            size: v.len(),
            capacity: v.capacity(),
        }
    }

    pub fn into_vec(self) -> Vec<T> {
        if self.data.is_null() {
            return Vec::new();
        }
        // SAFETY: the parts came from from_vec; the caller gives each value back once.
        unsafe { Vec::from_raw_parts(self.data, self.size, self.capacity) }
    }
}

thread_local! {
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}
static HOOK: Once = Once::new();

/// Runs an export's body. A failure's message goes to `error`; a panic becomes Code::Internal, its
/// place (not its text, which may quote the input) the message.
pub fn guard(error: *mut Bytes, body: impl FnOnce() -> Result<(), Failure>) -> Code {
    HOOK.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map(|l| l.to_string()).unwrap_or_default();
            PANIC_PLACE.with(|p| *p.borrow_mut() = place);
        }))
    });
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Code::Ok,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Code::Internal, PANIC_PLACE.with(|p| p.take())),
    };
    // SAFETY: every export requires `error` to be writable.
    unsafe { error.write(Bytes::from_vec(failure.message.into_bytes())) };
    failure.code
}
