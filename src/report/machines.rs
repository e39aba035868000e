//! The section about machines: one line for each role, with what its machines are.

use super::page::Section;
use super::table::{html_table, number_cell, row_head, text_cell};
use crate::blueprint::{Blueprint, CONTROL_PLANE_DISK_GIB};
use crate::config::{Pool, Rollout};
use crate::plural::count_of;

/// The number of machines that cluster.yaml asks for.
pub(super) fn machine_count(blueprint: &Blueprint) -> u32 {
    let cluster = &blueprint.cluster;
    cluster.etcd.count + cluster.controllers.count + cluster.pools.iter().map(|pool| pool.count).sum::<u32>()
}

/// The number of GPUs in the machines that cluster.yaml asks for.
pub(super) fn gpu_count(blueprint: &Blueprint) -> u32 {
    let gpus = |pool: &Pool| pool.gpus.as_ref().map_or(0, |gpus| gpus.count) * pool.count;
    blueprint.cluster.pools.iter().map(gpus).sum()
}

/// The section.
pub(super) fn machines_section(blueprint: &Blueprint) -> Section {
    let cluster = &blueprint.cluster;
    let zones = |zones: &[crate::config::values::AvailabilityZone]| {
        zones.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let all = zones(&cluster.availability_zones);
    let mut used: Vec<String> = Vec::new();
    for member in 0..cluster.etcd.count {
        let zone = cluster.etcd_availability_zone(member).to_string();
        if !used.contains(&zone) {
            used.push(zone);
        }
    }
    let etcd = vec![
        row_head("etcd members"),
        number_cell(cluster.etcd.count),
        text_cell(&cluster.etcd.instance_type),
        text_cell(used.join(", ")),
        text_cell(format!("{CONTROL_PLANE_DISK_GIB} GiB, and {} GiB of data", cluster.etcd.volume_gib)),
        text_cell("one at a time"),
    ];
    let controllers = vec![
        row_head("controllers"),
        number_cell(cluster.controllers.count),
        text_cell(&cluster.controllers.instance_type),
        text_cell(&all),
        text_cell(format!("{CONTROL_PLANE_DISK_GIB} GiB")),
        text_cell("one at a time"),
    ];
    let pools = cluster.pools.iter().map(|pool| {
        let count = if pool.min_count == pool.max_count {
            pool.count.to_string()
        } else {
            format!("{} ({} to {})", pool.count, pool.min_count, pool.max_count)
        };
        let types: Vec<String> = pool.instance_types.iter().map(ToString::to_string).collect();
        let mut what = types.join(" or ");
        if pool.spot {
            what.push_str(", spot");
        }
        if let Some(gpus) = &pool.gpus {
            let gib = gpus.memory_mib / 1024;
            what = format!("{what}, {} {} with {gib} GiB", count_of(gpus.count, "GPU"), gpus.model);
        }
        vec![
            row_head(format!("pool {}", pool.name)),
            number_cell(count),
            text_cell(what),
            text_cell(zones(&pool.availability_zones)),
            text_cell(format!("{} GiB", pool.root_volume_gib)),
            text_cell(match pool.rollout {
                Rollout::Rolling => "one after another",
                Rollout::Manual => "when you say so",
            }),
        ]
    });
    let head = ["Role", "Machines", "Instance type", "Availability zones", "Disk", "Replaced"];
    let rows = [etcd, controllers].into_iter().chain(pools);
    Section::new("machines", "Machines").part(html_table("Machines by role", &head, rows))
}
