//! The picture of a cluster: availability zones, subnets, machines by pool, load balancers, the file system, and an arrow for each
//! allowed connection. Same blueprint, same bytes.

mod arrows;
mod content;
mod draw;
mod geometry;
mod layout;
mod legend;
mod marks;

use content::{picture_bands, subnet_labels};
use layout::Layout;
pub(crate) use marks::{Mark, Marks};

use super::connections::connections_between_machines;
use super::markup::{HtmlElement, element, style_element};
use crate::blueprint::Blueprint;
use crate::plural::count_of;

const STYLE: &str = include_str!("picture.css");
/// The height of the name above a picture that stands alone.
const NAME_HEIGHT: i32 = 72;
/// What a file of ours says of itself.
pub(crate) const GENERATOR: &str = "infra report";

/// The picture for a page, which has a heading and the table of connections of its own.
pub(super) fn cluster_picture(blueprint: &Blueprint, marks: &Marks) -> HtmlElement {
    let connections = connections_between_machines(blueprint);
    let zones = blueprint.cluster.availability_zones.len();
    let layout = Layout::new(
        &picture_bands(blueprint, marks),
        subnet_labels(blueprint, marks),
        zones,
        &connections,
        16,
    );
    picture_frame(blueprint, layout.width, layout.height)
        .children(draw::draw_picture(blueprint, &layout, marks))
}

/// The picture as a file, with the cluster's name and an explanation of every arrow.
pub(crate) fn picture_file(blueprint: &Blueprint) -> String {
    let connections = connections_between_machines(blueprint);
    let marks = Marks::default();
    let zones = blueprint.cluster.availability_zones.len();
    let bands = picture_bands(blueprint, &marks);
    let layout = Layout::new(&bands, subnet_labels(blueprint, &marks), zones, &connections, NAME_HEIGHT);
    let (legend, height) = legend::picture_legend(&connections, layout.height, layout.width);
    let svg = picture_frame(blueprint, layout.width, layout.height + height)
        .child(draw::draw_cluster_name(blueprint))
        .children(draw::draw_picture(blueprint, &layout, &marks))
        .children(legend);
    svg.document("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
}

fn picture_frame(blueprint: &Blueprint, width: i32, height: i32) -> HtmlElement {
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
        .child(style_element(STYLE))
        .child(element("rect").class("paper").with("width", width).with("height", height).with("rx", 12))
}
