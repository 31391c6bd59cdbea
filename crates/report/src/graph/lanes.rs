//! Lanes of the lines that skip boxes.

/// Maximum number of lanes; further lines share the last one.
pub const MAX_LANES: usize = 24;
/// Width of a lane.
pub const WIDTH: usize = 6;

/// Lanes with the last box of their last line.
#[derive(Default)]
pub struct Lanes(Vec<usize>);

impl Lanes {
    /// Returns the position of a lane, left of `left`, that is free from box `from` to box `to`. Lines come in the order
    /// of `to`.
    pub fn take(&mut self, from: usize, to: usize, left: usize) -> usize {
        let free = self.0.iter().position(|end| *end <= from);
        let lane = free.unwrap_or(self.0.len()).min(MAX_LANES - 1);
        match self.0.get_mut(lane) {
            Some(end) => *end = to,
            None => self.0.push(to),
        }
        left - (lane + 1) * WIDTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_overlap_have_other_lanes() {
        let mut lanes = Lanes::default();
        assert_eq!(
            [(0, 4), (2, 5), (4, 8)].map(|(from, to)| lanes.take(from, to, 100)),
            [94, 88, 94]
        );
        for to in 10..90 {
            assert!(lanes.take(0, to, 1000) >= 1000 - MAX_LANES * WIDTH);
        }
    }
}
