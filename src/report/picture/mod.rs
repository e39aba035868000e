//! The picture of a cluster: availability zones, subnets, machines by pool, load balancers, the file system, and an arrow for each
//! allowed connection. Same blueprint, same bytes.

mod arrows;
mod content;
mod draw;
mod geometry;
mod layout;
mod legend;
mod marks;

use content::{bands, subnets};
use layout::Layout;
pub(crate) use marks::{Mark, Marks};

use super::connections::connections;
use super::markup::{Element, element, style};
use crate::blueprint::Blueprint;
use crate::plural::count_of;

const STYLE: &str = include_str!("picture.css");
/// The height of the name above a picture that stands alone.
const NAME_HEIGHT: i32 = 72;
/// What a file of ours says of itself.
pub(crate) const GENERATOR: &str = "infra report";

/// The picture for a page, which has a heading and the table of connections of its own.
pub(super) fn picture(blueprint: &Blueprint, marks: &Marks) -> Element {
    let connections = connections(blueprint);
    let zones = blueprint.cluster.availability_zones.len();
    let layout = Layout::new(&bands(blueprint, marks), subnets(blueprint, marks), zones, &connections, 16);
    frame(blueprint, layout.width, layout.height).children(draw::draw(blueprint, &layout, marks))
}

/// The picture as a file, with the cluster's name and an explanation of every arrow.
pub(crate) fn picture_file(blueprint: &Blueprint) -> String {
    let connections = connections(blueprint);
    let marks = Marks::default();
    let zones = blueprint.cluster.availability_zones.len();
    let bands = bands(blueprint, &marks);
    let layout = Layout::new(&bands, subnets(blueprint, &marks), zones, &connections, NAME_HEIGHT);
    let (legend, height) = legend::legend(&connections, layout.height, layout.width);
    let svg = frame(blueprint, layout.width, layout.height + height)
        .child(draw::name(blueprint))
        .children(draw::draw(blueprint, &layout, &marks))
        .children(legend);
    svg.document("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
}

fn frame(blueprint: &Blueprint, width: i32, height: i32) -> Element {
    let cluster = &blueprint.cluster;
    let nodes: u32 = cluster.pools.iter().map(|pool| pool.count).sum();
    let description = format!(
        "{}: {}, {}, {} in {}; numbered arrows show who may connect to whom.",
        count_of(cluster.availability_zones.len(), "availability zone"),
        count_of(cluster.etcd.count, "etcd member"),
        count_of(cluster.controllers.count, "controller"),
        count_of(nodes, "node"),
        count_of(cluster.pools.len(), "pool"),
    );
    element("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .class("picture")
        .with("data-generator", GENERATOR)
        .with("viewBox", format!("0 0 {width} {height}"))
        .with("width", width)
        .with("height", height)
        .with("role", "img")
        .with("aria-labelledby", "picture-title picture-description")
        .child(element("title").with("id", "picture-title").text(format!("The cluster {}", cluster.name)))
        .child(element("desc").with("id", "picture-description").text(description))
        .child(style(STYLE))
        .child(element("rect").class("paper").with("width", width).with("height", height).with("rx", 12))
}
