//! Makes throw-away credentials for every golden cluster that has none, with certificates that last for 50 years.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a tool for those who work on the tests")]

use std::path::Path;

use infra::blueprint::Blueprint;
use infra::config;
use infra::credentials::{AuthoritySource, CredentialStore, Request, ensure_credentials};
use time::OffsetDateTime;

const DAYS: u16 = 50 * 365;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters");
    for entry in std::fs::read_dir(root).expect("tests/clusters can be read") {
        let directory = entry.expect("tests/clusters can be read").path();
        if !directory.is_dir() {
            continue;
        }
        let cluster = config::load(&directory.join("cluster.yaml")).expect("a golden cluster is valid").value;
        let mut identities = Blueprint::new(cluster).expect("a golden cluster can be planned").identities;
        identities.authorities.iter_mut().for_each(|authority| authority.days = DAYS);
        identities.certificates.iter_mut().for_each(|certificate| certificate.days = DAYS);
        let store =
            CredentialStore::open(&directory.join("credentials"), || {}).expect("credentials can be opened");
        let request = Request {
            identities: &identities,
            now: OffsetDateTime::now_utc(),
            authorities: AuthoritySource::Generated,
            replace_authorities: false,
            renew: false,
        };
        let ensured = ensure_credentials(&store, &request).expect("credentials can be made");
        println!("{}: {} identities", directory.display(), ensured.actions.len());
    }
}
