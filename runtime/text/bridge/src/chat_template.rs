//! Chat templates with the meaning that `apply_chat_template` gives them: trim_blocks,
//! lstrip_blocks, Python's methods, `tojson` as json.dumps, `raise_exception`. No clock, no files,
//! no includes.

use crate::ffi::{Code, Failure};
use crate::python_json::tojson;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use std::io;

const NAME: &str = "chat_template";
const MAX_RECURSION: usize = 64;
const MAX_MESSAGE_BYTES: usize = 256;
const RAISED: &str = "raise_exception: ";

pub struct Template {
    env: Environment<'static>,
}

/// Python's `str`: what Jinja2 prints for the values whose spelling differs.
fn format_value(out: &mut Output, state: &State, value: &Value) -> Result<(), Error> {
    let python = match value.kind() {
        ValueKind::None => "None",
        ValueKind::Bool if value.is_true() => "True",
        ValueKind::Bool => "False",
        _ => return minijinja::escape_formatter(out, state, value),
    };
    out.write_str(python).map_err(Error::from)
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("{RAISED}{message}"),
    ))
}

/// At most MAX_MESSAGE_BYTES, no control characters, no marks of the caller (U+FDD0).
fn clean(message: &str) -> String {
    let mut out = String::new();
    for c in message.chars() {
        if out.len() + c.len_utf8() > MAX_MESSAGE_BYTES {
            break;
        }
        match c {
            '\u{fdd0}' => {}
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A byte sink that fails when the output grows over its bound.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.limit - self.bytes.len() {
            self.full = true;
            return Err(io::Error::other("full"));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Template {
    pub fn new(source: &str) -> Result<Self, Failure> {
        let mut env = Environment::new();
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_keep_trailing_newline(false);
        env.set_undefined_behavior(UndefinedBehavior::Lenient);
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_recursion_limit(MAX_RECURSION);
        env.set_formatter(format_value);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_filter("tojson", tojson);
        env.add_function("raise_exception", raise_exception);
        env.add_template_owned(NAME, source.to_owned())
            .map_err(|e| {
                let line = e.line().map(|l| format!(" (line {l})")).unwrap_or_default();
                let detail = e
                    .detail()
                    .map(|d| format!(": {}", clean(d)))
                    .unwrap_or_default();
                Failure::invalid(format!(
                    "chat template does not compile: {}{detail}{line}",
                    e.kind()
                ))
            })?;
        Ok(Template { env })
    }

    pub fn render(
        &self,
        context_json: &str,
        max_steps: u64,
        limit: usize,
    ) -> Result<String, Failure> {
        let context: serde_json::Value = serde_json::from_str(context_json)
            .map_err(|e| Failure::invalid(format!("template variables are not JSON: {e}")))?;
        // The environment holds the fuel setting; a clone shares the compiled template.
        let mut env = self.env.clone();
        env.set_fuel(Some(max_steps));
        let template = env
            .get_template(NAME)
            .map_err(|_| Failure::new(Code::Internal, "the template is gone"))?;
        let mut out = Bounded {
            bytes: Vec::new(),
            limit,
            full: false,
        };
        let result = template.render_captured_to(Value::from_serialize(&context), &mut out);
        match result {
            Ok(_) => String::from_utf8(out.bytes)
                .map_err(|_| Failure::new(Code::Internal, "the rendering is not UTF-8")),
            Err(_) if out.full => Err(Failure::new(
                Code::Budget,
                format!("the rendering is above {limit} bytes"),
            )),
            Err(e) => Err(render_failure(&e, max_steps)),
        }
    }
}

fn render_failure(error: &Error, max_steps: u64) -> Failure {
    // An error inside a macro or a block is wrapped: the innermost one says what happened.
    let mut inner = error;
    while let Some(next) = std::error::Error::source(inner).and_then(|s| s.downcast_ref::<Error>())
    {
        inner = next;
    }
    if inner.kind() == ErrorKind::OutOfFuel {
        return Failure::new(
            Code::Budget,
            format!("the rendering takes over {max_steps} steps"),
        );
    }
    let detail = inner.detail().unwrap_or_default();
    if let Some(message) = detail.strip_prefix(RAISED) {
        return Failure::new(Code::Raised, clean(message));
    }
    if detail.contains("recursion limit") {
        return Failure::new(
            Code::Budget,
            format!("the rendering nests over {MAX_RECURSION} deep"),
        );
    }
    let line = inner
        .line()
        .map(|l| format!(" in line {l}"))
        .unwrap_or_default();
    Failure::invalid(format!(
        "the template failed{line}: {}",
        clean(&inner.kind().to_string())
    ))
}
