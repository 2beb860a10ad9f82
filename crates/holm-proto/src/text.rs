//! Text in a buffer of fixed size.

/// Writes text into a buffer. What does not fit is left out.
#[derive(Debug)]
pub struct Text<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Text<'a> {
    /// An empty text that has `buffer` for room.
    pub fn new(buffer: &'a mut [u8]) -> Text<'a> {
        Text { buffer, len: 0 }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `bytes`.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        if let Some(room) = self.buffer.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
        self
    }

    /// Adds `number` in decimal digits.
    pub fn number(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (number % 10).to_le_bytes()[0];
            number /= 10;
            first -= 1;
            if number == 0 {
                break;
            }
        }
        self.put(&digits[first..])
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn numbers_are_decimal_and_what_does_not_fit_is_left_out() {
        let mut buffer = [b'.'; 24];
        let mut text = Text::new(&mut buffer);
        text.number(0).put(b" ").number(u64::MAX).put(b"too long");
        assert_eq!(text.len(), 22);
        assert_eq!(&buffer, b"0 18446744073709551615..");
    }
}
