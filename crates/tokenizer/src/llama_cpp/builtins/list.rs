//! Filters and methods of lists.

use super::{Call, Table, attribute, default, not_implemented, paid, place, slice, test, tojson};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::value::{List, Order, Value, compare, text_of};

pub const LIST: Table = &[
    ("default", default),
    ("list", |call| Ok(Value::list(items(call)?))),
    ("first", |call| Ok(items(call)?.first().cloned().unwrap_or_else(|| Value::undefined("")))),
    ("last", |call| Ok(items(call)?.last().cloned().unwrap_or_else(|| Value::undefined("")))),
    ("length", |call| Ok(Value::Int(call.list()?.items.borrow().len() as i64))),
    ("slice", sliced),
    ("selectattr", |call| selected(call, true)),
    ("select", |call| selected(call, true)),
    ("rejectattr", |call| selected(call, false)),
    ("reject", |call| selected(call, false)),
    ("join", join),
    ("string", string),
    ("tojson", tojson),
    ("map", map),
    ("append", append),
    ("pop", pop),
    ("sort", sort),
    ("reverse", reverse),
    ("min", |call| extreme(call, Order::Less)),
    ("max", |call| extreme(call, Order::Greater)),
    ("unique", not_implemented),
];

/// Copies the items.
fn items(call: &Call<'_>) -> Result<Vec<Value>> {
    let list = call.list()?;
    let items = list.items.borrow();
    call.machine.budget.list(items.len())?;
    Ok(items.clone())
}

/// Returns items as the type of the list that they are from.
fn same_type(call: &Call<'_>, items: Vec<Value>) -> Result<Value> {
    Ok(if call.list()?.is_tuple { Value::tuple(items) } else { Value::list(items) })
}

fn sliced(call: &Call<'_>) -> Result<Value> {
    let items = items(call)?;
    let places = slice(call, items.len())?;
    same_type(call, places.into_iter().map(|place| items[place].clone()).collect())
}

/// `select`, `selectattr` and their opposites are one filter: with one argument it is an attribute that must be true,
/// with two a test and its argument on the items, with three an attribute, a test and its argument.
fn selected(call: &Call<'_>, wanted: bool) -> Result<Value> {
    call.count(2, 4)?;
    let items = items(call)?;
    let first = call.text(1)?;
    let name = match call.arguments.len() {
        2 => None,
        3 => Some(first.lossy()),
        _ => Some(text_of(&call.at(2)?, &call.machine.budget)?.lossy()),
    };
    let function = match &name {
        Some(name) => match test(name) {
            Some(function) => Some(function),
            None => return failed(format!("{}: unknown test '{name}'", call.name)),
        },
        None => None,
    };
    let mut out = Vec::new();
    for item in items {
        call.machine.budget.spend(1)?;
        let subject = match call.arguments.len() {
            3 => item.clone(),
            _ => attribute(
                &item,
                &Value::Text(first.clone()),
                &Value::undefined(""),
                &call.machine.budget,
            )?,
        };
        let value = match function {
            Some(function) => {
                let arguments = vec![subject, call.at(call.arguments.len() - 1)?];
                function(&Call { machine: call.machine, name: call.name, arguments })?
            }
            None => subject,
        };
        if value.is_true()? == wanted {
            out.push(item);
        }
    }
    Ok(Value::list(out))
}

fn join(call: &Call<'_>) -> Result<Value> {
    call.count(1, 3)?;
    let budget = &call.machine.budget;
    let separator = match call.keyword_or("d", 1) {
        Value::Undefined(_) => Vec::new(),
        other => text_of(&other, budget)?.bytes.clone(),
    };
    let name = call.keyword_or("attribute", 2);
    let mut out = Vec::new();
    for (i, item) in items(call)?.into_iter().enumerate() {
        let item = match name.is_undefined() {
            true => item,
            false => attribute(&item, &name, &Value::undefined(""), &call.machine.budget)?,
        };
        if !item.is_number() && !matches!(item, Value::Text(_)) {
            return failed("join() can only join arrays of strings or numerics");
        }
        if i > 0 {
            budget.text(separator.len())?;
            out.extend_from_slice(&separator);
        }
        let text = text_of(&item, budget)?;
        budget.text(text.bytes.len())?;
        out.extend_from_slice(&text.bytes);
    }
    paid(call.machine, out)
}

fn string(call: &Call<'_>) -> Result<Value> {
    let value = call.at(0)?;
    call.machine.mark_all(&value);
    text_of(&value, &call.machine.budget).map(Value::Text)
}

/// Maps to attributes; filters cannot be mapped.
fn map(call: &Call<'_>) -> Result<Value> {
    call.count(2, usize::MAX)?;
    if !matches!(call.at(1)?, Value::Keyword(_)) {
        return failed("map with a filter is not implemented");
    }
    let name = call.keyword_or("attribute", 1);
    let otherwise = call.keyword("default").unwrap_or_else(|| Value::undefined(""));
    let mut out = Vec::new();
    for item in items(call)? {
        out.push(attribute(&item, &name, &otherwise, &call.machine.budget)?);
    }
    same_type(call, out)
}

/// Fails for a tuple.
fn change<T>(call: &Call<'_>, change: impl FnOnce(&List) -> Result<T>) -> Result<T> {
    let list = call.list()?;
    if list.is_tuple {
        return failed("Attempting to modify immutable type");
    }
    change(&list)
}

fn append(call: &Call<'_>) -> Result<Value> {
    call.count(2, usize::MAX)?;
    call.machine.budget.list(2)?;
    let (value, item) = (call.at(0)?, call.at(1)?);
    change(call, |list| {
        list.items.borrow_mut().push(item);
        call.machine.note_change(&value);
        Ok(value)
    })
}

fn pop(call: &Call<'_>) -> Result<Value> {
    call.count(1, 2)?;
    let index = if call.arguments.len() == 2 { call.at(1)?.as_int()? } else { -1 };
    change(call, |list| {
        let mut items = list.items.borrow_mut();
        call.machine.budget.list(items.len())?;
        match place(index, items.len()) {
            Some(place) => Ok(items.remove(place)),
            None => {
                failed(format!("Index {index} out of bounds for array of size {}", items.len()))
            }
        }
    })
}

/// Sorts by insertion, as `std::sort` of up to 16 items: types that do not compare leave an order that depends on it.
pub fn sorted<T>(
    items: Vec<T>,
    is_reversed: bool,
    key: impl Fn(&T) -> Result<Value>,
    call: &Call<'_>,
) -> Result<Vec<T>> {
    let order = if is_reversed { Order::Greater } else { Order::Less };
    let mut out: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        let own = key(&item)?;
        let mut at = out.len();
        if at > 0 && compare(&own, &key(&out[0])?, order, &call.machine.budget)? {
            at = 0;
        }
        while at > 0 && compare(&own, &key(&out[at - 1])?, order, &call.machine.budget)? {
            at -= 1;
        }
        call.machine.budget.list(out.len() - at)?;
        out.insert(at, item);
    }
    Ok(out)
}

fn sort(call: &Call<'_>) -> Result<Value> {
    call.count(1, 4)?;
    let is_reversed = call.keyword_or("reverse", 1).is_true()?;
    let name = call.keyword_or("attribute", 3);
    let key = |item: &Value| match name.is_undefined() {
        true => Ok(item.clone()),
        false => attribute(item, &name, &Value::undefined(""), &call.machine.budget),
    };
    let items = sorted(items(call)?, is_reversed, key, call)?;
    same_type(call, items)
}

fn reverse(call: &Call<'_>) -> Result<Value> {
    let mut items = items(call)?;
    items.reverse();
    same_type(call, items)
}

fn extreme(call: &Call<'_>, order: Order) -> Result<Value> {
    call.count(1, 4)?;
    let name = call.keyword_or("attribute", 2);
    let key = |item: &Value| match name.is_undefined() {
        true => Ok(item.clone()),
        false => attribute(item, &name, &Value::undefined(""), &call.machine.budget),
    };
    let mut items = items(call)?.into_iter();
    let Some(mut best) = items.next() else { return Ok(Value::undefined("")) };
    for item in items {
        if compare(&key(&item)?, &key(&best)?, order, &call.machine.budget)? {
            best = item;
        }
    }
    Ok(best)
}
