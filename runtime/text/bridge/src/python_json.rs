//! `json.dumps` as Python writes it: what `tojson` means in a chat template. No HTML escapes,
//! spaces after separators, characters outside ASCII as they are.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use serde_json::Value as Json;
use std::fmt::Write;

const MAX_DEPTH: usize = 64;

struct Style {
    indent: Option<usize>,
    item_separator: String,
    key_separator: String,
    ensure_ascii: bool,
    sort_keys: bool,
}

pub fn tojson(value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = kwargs.get("indent")?;
    let separators: Option<Vec<String>> = kwargs.get("separators")?;
    let ensure_ascii: Option<bool> = kwargs.get("ensure_ascii")?;
    let sort_keys: Option<bool> = kwargs.get("sort_keys")?;
    kwargs.assert_all_used()?;
    let bad = |what: &str| Error::new(ErrorKind::InvalidOperation, format!("tojson: {what}"));
    if indent.is_some_and(|n| n > 16) {
        return Err(bad("indent is above 16"));
    }
    let (item_separator, key_separator) = match separators {
        None => (
            if indent.is_some() { "," } else { ", " }.to_owned(),
            ": ".to_owned(),
        ),
        Some(s) => match <[String; 2]>::try_from(s) {
            Ok([item, key]) => (item, key),
            Err(_) => return Err(bad("separators are two strings")),
        },
    };
    let style = Style {
        indent,
        item_separator,
        key_separator,
        ensure_ascii: ensure_ascii.unwrap_or(false),
        sort_keys: sort_keys.unwrap_or(false),
    };
    let json = serde_json::to_value(value).map_err(|_| bad("the value cannot be serialized"))?;
    let mut out = String::new();
    write_value(&json, &style, 0, &mut out).map_err(|_| bad("the value is nested too deep"))?;
    Ok(Value::from(out))
}

fn write_value(value: &Json, style: &Style, depth: usize, out: &mut String) -> std::fmt::Result {
    if depth > MAX_DEPTH {
        return Err(std::fmt::Error);
    }
    match value {
        Json::String(s) => write_string(s, style, out),
        Json::Number(n) => write_number(n, out),
        Json::Array(items) => {
            let write_item =
                |item: &Json, out: &mut String| write_value(item, style, depth + 1, out);
            write_items(items.iter(), ['[', ']'], (style, depth), out, write_item)
        }
        Json::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            if style.sort_keys {
                members.sort_by(|a, b| a.0.cmp(b.0));
            }
            write_items(
                members.into_iter(),
                ['{', '}'],
                (style, depth),
                out,
                |(key, item), out| {
                    write_string(key, style, out)?;
                    out.push_str(&style.key_separator);
                    write_value(item, style, depth + 1, out)
                },
            )
        }
        other => write!(out, "{other}"), // null, true, false
    }
}

fn write_items<T>(
    items: impl ExactSizeIterator<Item = T>,
    brackets: [char; 2],
    (style, depth): (&Style, usize),
    out: &mut String,
    write_item: impl Fn(T, &mut String) -> std::fmt::Result,
) -> std::fmt::Result {
    let count = items.len();
    let break_line = |depth: usize, out: &mut String| {
        if let (Some(indent), true) = (style.indent, count > 0) {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    out.push(brackets[0]);
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push_str(&style.item_separator);
        }
        break_line(depth + 1, out);
        write_item(item, out)?;
    }
    break_line(depth, out);
    out.push(brackets[1]);
    Ok(())
}

/// Integers as they are; floats in Python's `repr`, which writes an exponent below 1e-4 and from
/// 1e16 on.
fn write_number(number: &serde_json::Number, out: &mut String) -> std::fmt::Result {
    let Some(f) = number.as_f64().filter(|_| number.is_f64()) else {
        return write!(out, "{number}");
    };
    let magnitude = f.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{f:e}"); // 1.5e-7, 1e16
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
    }
    write!(out, "{f:?}") // 1.0, 0.1
}

fn write_string(s: &str, style: &Style, out: &mut String) -> std::fmt::Result {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32)?,
            c if !c.is_ascii() && style.ensure_ascii => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}
