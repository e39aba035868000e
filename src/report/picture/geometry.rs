//! Rectangles, and bands that have a position.

use super::content::Band;

/// How far arrows that begin or end at a band are apart.
pub(super) const PITCH: i32 = 19;
/// How far lanes are apart.
pub(super) const LANE_WIDTH: i32 = 18;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

impl Area {
    pub(super) fn right(self) -> i32 {
        self.x + self.width
    }

    pub(super) fn bottom(self) -> i32 {
        self.y + self.height
    }
}

/// A band with its position.
#[derive(Clone, Debug)]
pub(super) struct PlacedBand {
    pub(super) area: Area,
    pub(super) band: Band,
    /// Its rows, each with the boxes in it.
    pub(super) rows: Vec<(Area, Vec<Area>)>,
}

/// The number as a coordinate.
pub(super) fn svg_coordinate(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX / 1024)
}
