//! What takes the most room in a directory, so that its owner knows what to leave out.

use std::collections::BTreeMap;

use crate::job::data::bytes_in_words;
use crate::plural::count_of;

/// How many entries are named.
const NAMED: usize = 3;

/// The room of a file, or of a directory with all that is below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    files: u64,
    bytes: u64,
    is_directory: bool,
}

/// Names the largest entries, by size or by the number of files. A directory that is large because of one entry stands for that entry.
pub(super) fn name_largest<'a>(files: impl Iterator<Item = (&'a str, u64)>, by_files: bool) -> String {
    let mut rooms: BTreeMap<&str, Room> = BTreeMap::new();
    for (path, bytes) in files {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let room = rooms.entry(&path[..end]).or_default();
            room.files += 1;
            room.bytes += bytes;
            room.is_directory |= end < path.len();
        }
    }
    let weight = |room: &Room| if by_files { room.files } else { room.bytes };
    let parent = |path: &str| path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
    let mut heaviest_child: BTreeMap<String, u64> = BTreeMap::new();
    for (path, room) in &rooms {
        if let Some(parent) = parent(path) {
            let heaviest = heaviest_child.entry(parent).or_default();
            *heaviest = (*heaviest).max(weight(room));
        }
    }
    let mut sorted: Vec<(&&str, &Room)> = rooms.iter().collect();
    sorted.sort_by_key(|(path, room)| (std::cmp::Reverse(weight(room)), **path));
    let mut chosen: Vec<(&str, &Room)> = Vec::new();
    for (path, room) in sorted {
        let is_one_entry = heaviest_child.get(*path).is_some_and(|child| child * 5 >= weight(room) * 4);
        let is_named = chosen.iter().any(|(other, _)| is_inside(path, other) || is_inside(other, path));
        // Of many files no single one is large.
        let is_alone = by_files && !room.is_directory;
        if is_one_entry && !(by_files && heaviest_child.get(*path) == Some(&1)) || is_named || is_alone {
            continue;
        }
        chosen.push((path, room));
        if chosen.len() == NAMED {
            break;
        }
    }
    let words = |(path, room): &(&str, &Room)| {
        let slash = if room.is_directory { "/" } else { "" };
        let size = if by_files { count_of(room.files, "file") } else { bytes_in_words(room.bytes) };
        format!("{path}{slash} ({size})")
    };
    chosen.iter().map(words).collect::<Vec<_>>().join(", ")
}

fn is_inside(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::name_largest;

    #[test]
    fn what_can_be_left_out_is_named() {
        let files = [
            ("src/data/train.bin", 200 << 20),
            ("src/data/small.txt", 1 << 10),
            ("runs/1/a.pt", 30 << 20),
            ("runs/2/b.pt", 30 << 20),
            ("train.py", 2 << 10),
        ];
        assert_eq!(
            name_largest(files.into_iter(), false),
            "src/data/train.bin (200 MiB), runs/ (60 MiB), train.py (2 KiB)"
        );
        let names: Vec<String> = (0..50).map(|number| format!("cache/{}/{number}", number % 2)).collect();
        let many = names.iter().map(|name| (name.as_str(), 1)).chain([("train.py", 1)]);
        assert_eq!(name_largest(many, true), "cache/ (50 files)");
    }
}
