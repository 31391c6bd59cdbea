//! Writer of the protobuf wire format.

/// Appends a bytes field.
pub(super) fn bytes(out: &mut Vec<u8>, id: u64, bytes: &[u8]) {
    varint(out, id << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a varint field. Negative numbers are in two's complement.
pub(super) fn number(out: &mut Vec<u8>, id: u64, value: i64) {
    varint(out, id << 3);
    varint(out, value.cast_unsigned());
}

/// Appends a float field.
pub(super) fn float(out: &mut Vec<u8>, id: u64, value: f32) {
    varint(out, id << 3 | 5);
    out.extend(value.to_le_bytes());
}

/// Appends a varint: seven bits per byte, lowest first, with the highest bit set in all but the last byte.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut out = Vec::new();
        super::number(&mut out, 40, 300);
        assert_eq!(out, [0xC0, 0x02, 0xAC, 0x02]);
        out.clear();
        super::number(&mut out, 1, -1);
        assert_eq!(out, [&[8][..], &[0xFF; 9], &[1]].concat());
    }
}
