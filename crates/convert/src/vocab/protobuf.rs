//! Reader of the protobuf wire format.

/// Iterator over the fields of a message.
pub(super) struct Fields<'a> {
    /// Whole file, to which the offsets of faults refer.
    file: &'a [u8],
    pos: usize,
    end: usize,
}

/// Field: number and value.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub number: u64,
    pub value: Wire<'a>,
    /// Offset of the field in the file.
    pub at: usize,
}

/// Value of a field.
#[derive(Debug)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64,
    /// Bytes of a string, byte array or message, and their offset in the file.
    Bytes(&'a [u8], usize),
}

/// Error in the wire format, with its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub what: &'static str,
    pub at: usize,
}

impl<'a> Fields<'a> {
    /// Returns the fields of the message in `file`.
    pub fn of_file(file: &'a [u8]) -> Self {
        Self { file, pos: 0, end: file.len() }
    }

    /// Returns the fields of the message in `field`.
    pub fn of_field(&self, field: &Field<'a>) -> Result<Self, Fault> {
        let Wire::Bytes(bytes, start) = field.value else {
            return Err(Fault { what: "a number instead of a message", at: field.at });
        };
        Ok(Self { file: self.file, pos: start, end: start + bytes.len() })
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let at = self.pos;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault { what: "a number of more than 64 bits", at })
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let left = &self.file[self.pos..self.end];
        let taken = usize::try_from(len).ok().and_then(|len| left.get(..len));
        let taken = taken.ok_or(Fault { what: "a value ends behind its message", at: self.pos })?;
        self.pos += taken.len();
        Ok(taken)
    }

    fn field(&mut self) -> Result<Field<'a>, Fault> {
        let at = self.pos;
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed64)?,
            2 => {
                let len = self.varint()?;
                let start = self.pos;
                Wire::Bytes(self.take(len)?, start)
            }
            5 => {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(self.take(4)?);
                Wire::Fixed32(bytes)
            }
            _ => return Err(Fault { what: "a field of an unknown wire type", at }),
        };
        Ok(Field { number: tag >> 3, value, at })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pos >= self.end {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.pos = self.end;
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_offset() {
        let fault = |file| Fields::of_file(file).find_map(Result::err).unwrap();
        assert_eq!(fault(&[0x0A, 5, b'a']).at, 2);
        assert_eq!(fault(&[0x08, 1, 0x0B]).what, "a field of an unknown wire type");
        assert_eq!(fault(&[0x80]).what, "a value ends behind its message");
        assert_eq!(fault(&[0xFF; 12]).what, "a number of more than 64 bits");
        assert_eq!(fault(&[0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]).at, 11);
    }
}
