//! Arrows: from the right edge of one band through a lane to the right edge of another one. Short ways take the inner lanes, and ways
//! that do not meet share a lane.

use super::geometry::{LANE_WIDTH, PITCH, PlacedBand, svg_coordinate};
use crate::blueprint::SecurityGroup;
use crate::report::connections::{AllowedConnection, Origin};

/// The way of a connection.
#[derive(Clone, Debug)]
pub(super) struct Arrow {
    pub(super) number: usize,
    pub(super) from: Origin,
    pub(super) to: SecurityGroup,
    pub(super) ports: String,
    /// The logical ids of the rules.
    pub(super) rules: Vec<String>,
    /// The right edge of the bands.
    pub(super) edge: i32,
    pub(super) begin: i32,
    pub(super) end: i32,
    /// Where it runs up or down; none for what stays in one band.
    pub(super) lane: Option<i32>,
}

struct Way<'a, 'b> {
    connection: &'a AllowedConnection<'b>,
    from: usize,
    to: usize,
    lane: usize,
}

impl Way<'_, '_> {
    fn is_loop(&self) -> bool {
        self.from == self.to
    }

    fn span(&self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// Whether two ways would run beside each other.
    fn is_beside(&self, other: &Self) -> bool {
        let (one, two) = (self.span(), other.span());
        one.0.max(two.0) < one.1.min(two.1)
    }
}

/// The arrows of all connections between bands, and the number of lanes.
pub(super) fn route_arrows(
    bands: &[PlacedBand],
    connections: &[AllowedConnection<'_>],
    edge: i32,
    first_lane: i32,
) -> (Vec<Arrow>, i32) {
    let index = |origin: Origin| bands.iter().position(|band| band.band.origin == Some(origin));
    let mut ways: Vec<Way<'_, '_>> = Vec::new();
    for connection in connections {
        let ends = index(connection.from).zip(index(Origin::Group(connection.to)));
        ways.extend(ends.map(|(from, to)| Way { connection, from, to, lane: 0 }));
    }
    ways.sort_by_key(|way| (way.span().1 - way.span().0, way.span().0, way.connection.number));
    for position in 0..ways.len() {
        if ways[position].is_loop() {
            continue;
        }
        let (before, rest) = ways.split_at_mut(position);
        let Some(way) = rest.first_mut() else { continue };
        let is_taken = |lane: usize| {
            before.iter().any(|other| !other.is_loop() && other.lane == lane && other.is_beside(way))
        };
        way.lane = (0..=position).find(|lane| !is_taken(*lane)).unwrap_or_default();
    }
    let lanes = ways.iter().filter(|way| !way.is_loop()).map(|way| way.lane + 1).max().unwrap_or_default();
    let arrow = |way: &Way<'_, '_>| Arrow {
        number: way.connection.number,
        from: way.connection.from,
        to: way.connection.to,
        ports: way.connection.ports(),
        rules: way.connection.rules.iter().map(|rule| rule.resource()).collect(),
        edge,
        begin: arrow_height_at_band(bands, &ways, way.from, way),
        end: arrow_height_at_band(bands, &ways, way.to, way),
        lane: (!way.is_loop()).then(|| first_lane + svg_coordinate(way.lane) * LANE_WIDTH),
    };
    let mut arrows: Vec<Arrow> = ways.iter().map(arrow).collect();
    arrows.sort_by_key(|arrow| arrow.number);
    (arrows, svg_coordinate(lanes))
}

/// The height at which a way begins or ends at a band: ways that go up first, those that go down last, so that few lines cross.
fn arrow_height_at_band(
    bands: &[PlacedBand],
    ways: &[Way<'_, '_>],
    band: usize,
    wanted: &Way<'_, '_>,
) -> i32 {
    let mut touching: Vec<&Way<'_, '_>> =
        ways.iter().filter(|way| way.from == band || way.to == band).collect();
    touching.sort_by_key(|way| {
        let other = if way.from == band { way.to } else { way.from };
        let lane = svg_coordinate(way.lane);
        match other.cmp(&band) {
            std::cmp::Ordering::Less => (0, lane, way.connection.number),
            std::cmp::Ordering::Equal => (1, 0, way.connection.number),
            std::cmp::Ordering::Greater => (2, -lane, way.connection.number),
        }
    });
    let position = touching.iter().position(|way| way.connection.number == wanted.connection.number);
    let area = bands[band].area;
    let all = svg_coordinate(touching.len().saturating_sub(1)) * PITCH;
    area.y + (area.height - all) / 2 + svg_coordinate(position.unwrap_or_default()) * PITCH
}
