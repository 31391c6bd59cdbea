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

/// Maximum number of filters that call each other, as in `map('map', 'upper')`.
const MAX_RUNNING: usize = 50;

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
    let Some((name, filter)) = FILTERS.iter().find(|(other, _)| *other == name) else {
        return failed(format!("No filter named '{name}'."));
    };
    value.pay(&machine.budget)?;
    arguments.pay(&machine.budget)?;
    let running = machine.filters.get();
    if running >= MAX_RUNNING {
        return failed("maximum recursion depth exceeded");
    }
    machine.filters.set(running + 1);
    let result = filter(name, value, arguments, machine);
    machine.filters.set(running);
    result
}
