//! Positions: availability zones are columns, security groups are bands across them, and arrows run in lanes at the right.

use super::arrows::{Arrow, route_arrows};
use super::content::{Band, Card, Region, Row, SubnetLabel};
use super::geometry::{Area, LANE_WIDTH, PITCH, PlacedBand, svg_coordinate};
use crate::report::connections::AllowedConnection;

const MARGIN: i32 = 20;
const PADDING: i32 = 16;
const LABEL_WIDTH: i32 = 172;
const COLUMN_GAP: i32 = 10;
const PORTS_WIDTH: i32 = 170;
const CARD_HEIGHT: i32 = 50;
const PLAIN_CARD_HEIGHT: i32 = 32;
const CARD_GAP: i32 = 6;
const LINE_HEIGHT: i32 = 16;
const BAND_GAP: i32 = 10;
const VPC_LABEL: i32 = 36;
const ZONE_LABEL: i32 = 28;
const SUBNET_LABEL: i32 = 42;
/// How far the first lane is from the bands: numbers and loops are between them.
const FIRST_LANE: i32 = 58;

/// The whole picture.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) vpc: Area,
    pub(super) zones: Vec<Area>,
    pub(super) subnets: Vec<(Area, SubnetLabel)>,
    pub(super) bands: Vec<PlacedBand>,
    pub(super) arrows: Vec<Arrow>,
}

impl Layout {
    /// Finds a position for everything; `top` is where the picture begins.
    pub(super) fn new(
        bands: &[Band],
        subnets: Vec<SubnetLabel>,
        zones: usize,
        connections: &[AllowedConnection<'_>],
        top: i32,
    ) -> Self {
        let zone_count = svg_coordinate(zones.max(1));
        let left = MARGIN + PADDING;
        let grid = Grid { left, column: column_width(zones) };
        let columns = zone_count * grid.column + (zone_count - 1) * COLUMN_GAP;
        let band_width = LABEL_WIDTH + columns + PORTS_WIDTH;
        let slots = |band: &Band| {
            let touches = |connection: &&AllowedConnection<'_>| {
                let ends = band.origin.map(|origin| ends_at(connection, origin));
                ends.is_some_and(|(begins, arrives)| begins || arrives)
            };
            svg_coordinate(connections.iter().filter(touches).count())
        };
        let mut y = top;
        let mut placed: Vec<PlacedBand> = Vec::new();
        let mut place = |band: Band, y: &mut i32| {
            let needed = slots(&band) * PITCH + 10;
            let band = place_band(band, grid, *y, band_width, needed);
            *y = band.area.bottom() + BAND_GAP;
            placed.push(band);
        };
        let of = |region: Region| bands.iter().filter(move |band| band.region == region).cloned();
        of(Region::Outside).for_each(|band| place(band, &mut y));
        let vpc_top = y;
        let zone_top = vpc_top + VPC_LABEL;
        y = zone_top + ZONE_LABEL;
        let mut regions: Vec<(Region, i32, i32)> = Vec::new();
        for region in [Region::PublicSubnets, Region::MachineSubnets] {
            if subnets.iter().all(|subnet| subnet.region != region) {
                continue;
            }
            let region_top = y;
            y += SUBNET_LABEL;
            of(region).for_each(|band| place(band, &mut y));
            regions.push((region, region_top, y - region_top));
            y += BAND_GAP;
        }
        let zone = |index: usize| Area {
            x: grid.column_x(index),
            y: zone_top,
            width: grid.column,
            height: y - zone_top,
        };
        let zones: Vec<Area> = (0..zones).map(zone).collect();
        let in_region = |subnet: SubnetLabel| {
            let (_, top, height) = regions.iter().find(|(region, ..)| *region == subnet.region).copied()?;
            let area = Area { x: grid.column_x(subnet.zone) + 5, y: top, width: grid.column - 10, height };
            Some((area, subnet))
        };
        let subnets = subnets.into_iter().filter_map(in_region).collect();
        let right = left + band_width;
        let (arrows, lanes) = route_arrows(&placed, connections, right, right + FIRST_LANE);
        let vpc_width = right + FIRST_LANE + lanes * LANE_WIDTH + PADDING / 2 - MARGIN;
        let vpc = Area { x: MARGIN, y: vpc_top, width: vpc_width, height: y + BAND_GAP - vpc_top };
        Self {
            width: vpc.right() + MARGIN,
            height: vpc.bottom() + MARGIN,
            vpc,
            zones,
            subnets,
            bands: placed,
            arrows,
        }
    }
}

/// Whether a connection begins and whether it arrives at an origin.
pub(super) fn ends_at(
    connection: &AllowedConnection<'_>,
    origin: crate::report::connections::Origin,
) -> (bool, bool) {
    let arrives = crate::report::connections::Origin::Group(connection.to) == origin;
    (connection.from == origin, arrives)
}

/// Where columns are, and how wide.
#[derive(Clone, Copy, Debug)]
struct Grid {
    left: i32,
    column: i32,
}

impl Grid {
    fn column_x(self, index: usize) -> i32 {
        self.left + LABEL_WIDTH + svg_coordinate(index) * (self.column + COLUMN_GAP)
    }
}

/// Few columns are wider, so that names across all of them have room.
fn column_width(zones: usize) -> i32 {
    match zones {
        0 | 1 => 320,
        2 => 230,
        _ => 184,
    }
}

fn place_band(band: Band, grid: Grid, top: i32, width: i32, needed: i32) -> PlacedBand {
    let heights: Vec<i32> = band.rows.iter().map(row_height).collect();
    let gaps = svg_coordinate(heights.len().saturating_sub(1)) * BAND_GAP;
    let content = heights.iter().sum::<i32>() + gaps;
    let height = content.max(needed);
    let columns = width - LABEL_WIDTH - PORTS_WIDTH;
    let mut y = top + (height - content) / 2;
    let mut rows = Vec::new();
    for (row, row_height) in band.rows.iter().zip(heights) {
        let area = Area { x: grid.left, y, width, height: row_height };
        rows.push((area, place_cards(row, grid, area, columns)));
        y += row_height + BAND_GAP;
    }
    PlacedBand { area: Area { x: grid.left, y: top, width, height }, band, rows }
}

fn row_height(row: &Row) -> i32 {
    let label = 20 + svg_coordinate(row.details.len() + row.changes.len()) * LINE_HEIGHT + 12;
    let zones = row.cards.iter().map(|card| card.zone);
    let stacked = zones.map(|zone| stack_height(row.cards.iter().filter(move |card| card.zone == zone)));
    label.max(stacked.max().unwrap_or_default() + 2 * CARD_GAP)
}

fn stack_height<'a>(cards: impl Iterator<Item = &'a Card>) -> i32 {
    cards.map(|card| card_height(card) + CARD_GAP).sum::<i32>() - CARD_GAP
}

fn card_height(card: &Card) -> i32 {
    if card.role.is_some() { CARD_HEIGHT } else { PLAIN_CARD_HEIGHT }
}

/// Boxes of one availability zone are stacked, in the middle of their row.
fn place_cards(row: &Row, grid: Grid, area: Area, columns: i32) -> Vec<Area> {
    let place = |(position, card): (usize, &Card)| {
        let same = |other: &&Card| other.zone == card.zone;
        let before: i32 =
            row.cards[..position].iter().filter(same).map(|card| card_height(card) + CARD_GAP).sum();
        let height = stack_height(row.cards.iter().filter(same));
        let (x, width) = match card.zone {
            Some(zone) => (grid.column_x(zone) + 14, grid.column - 28),
            None => (grid.column_x(0) + 14, columns - 28),
        };
        Area { x, y: area.y + (area.height - height) / 2 + before, width, height: card_height(card) }
    };
    row.cards.iter().enumerate().map(place).collect()
}
