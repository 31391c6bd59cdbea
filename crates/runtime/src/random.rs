//! Pseudo-random numbers of tests.

pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Returns a number from -0.5 to 0.5.
    pub fn float(&mut self) -> f32 {
        self.next() as f32 / u32::MAX as f32 - 0.5
    }
}
