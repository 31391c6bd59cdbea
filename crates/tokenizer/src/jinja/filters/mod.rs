//! Filters.

mod attribute;
mod html;
mod json;
mod links;
mod number;
mod pprint;
mod select;
mod sequence;
mod sort;
mod text;
mod wrap;

use super::arguments::Arguments;
use super::error::{Result, failed};
use super::machine::Machine;
use super::value::Value;

/// A filter: computes `value | name(arguments)`.
type Filter = fn(&str, &Value, Arguments, &Machine) -> Result<Value>;

/// Filters by name.
const FILTERS: [(&str, Filter); 54] = [
    ("abs", number::abs),
    ("attr", attribute::attr),
    ("batch", sequence::batch),
    ("capitalize", text::change),
    ("center", text::center),
    ("count", sequence::length),
    ("d", sequence::default),
    ("default", sequence::default),
    ("dictsort", sort::dictsort),
    ("e", html::escape),
    ("escape", html::escape),
    ("filesizeformat", number::filesizeformat),
    ("first", sequence::first),
    ("float", number::float),
    ("forceescape", html::forceescape),
    ("format", text::format),
    ("groupby", sort::groupby),
    ("indent", text::indent),
    ("int", number::int),
    ("items", sequence::items),
    ("join", sequence::join),
    ("last", sequence::last),
    ("length", sequence::length),
    ("list", sequence::list),
    ("lower", text::change),
    ("map", select::map),
    ("max", sort::extreme),
    ("min", sort::extreme),
    ("pprint", pprint::pprint),
    ("random", sequence::random),
    ("reject", select::select),
    ("rejectattr", select::select_attribute),
    ("replace", text::replace),
    ("reverse", sequence::reverse),
    ("round", number::round),
    ("safe", html::safe),
    ("select", select::select),
    ("selectattr", select::select_attribute),
    ("slice", sequence::slice),
    ("sort", sort::sorted),
    ("string", text::string),
    ("striptags", html::striptags),
    ("sum", number::sum),
    ("title", text::change),
    ("tojson", json::tojson),
    ("trim", text::trim),
    ("truncate", text::truncate),
    ("unique", sort::unique),
    ("upper", text::change),
    ("urlencode", html::urlencode),
    ("urlize", links::urlize),
    ("wordcount", text::wordcount),
    ("wordwrap", wrap::wordwrap),
    ("xmlattr", html::xmlattr),
];

/// Whether a filter of this name exists.
pub fn exists(name: &str) -> bool {
    FILTERS.iter().any(|(other, _)| *other == name)
}

/// Computes `value | name(arguments)`.
pub fn call(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    match FILTERS.iter().find(|(other, _)| *other == name) {
        Some((name, filter)) => filter(name, value, arguments, machine),
        None => failed(format!("No filter named '{name}'.")),
    }
}
