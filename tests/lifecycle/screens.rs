//! What a person sees at a terminal while a command works: tests/screens/ has the screens, `SNAPSHOTS=overwrite` renews them. Times are
//! other ones in each run, so that they are left out when two screens are compared.

use std::fs;

use serde_json::json;

use crate::support::release_server::ReleaseServer;
use crate::support::tmux::{Tmux, without_times};
use crate::support::world::World;

const ROWS: usize = 40;
/// The first line of what is drawn again by `up`.
const FIRST_STEP: &str = "uploading machine configurations";

fn variables(world: &World) -> Vec<(String, String)> {
    let api = world.api.address().to_string();
    let account = world.workspace.account();
    [
        ("AWS_ACCESS_KEY_ID", account),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("INFRA_API_SERVER", &api),
        ("INFRA_RELEASE_SERVER", &ReleaseServer::shared().url()),
        ("INFRA_TEST_TEMPO", "0.05"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn line(world: &World, words: &str) -> String {
    let root = world.workspace.root().display();
    format!("{} -C {root} {words} --endpoint-url {}", env!("CARGO_BIN_EXE_infra"), world.proxy.url())
}

fn up_line(world: &World) -> String {
    line(world, &format!("up --s3-uri s3://{}/clusters", world.bucket()))
}

fn run(world: &World, columns: usize, line: &str) -> Tmux {
    let variables = variables(world);
    Tmux::run(columns, ROWS, line, variables.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// The screen from a line on.
#[track_caller]
fn from_line(screen: &str, part: &str) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let first = lines.iter().rposition(|line| line.contains(part));
    let first = first.unwrap_or_else(|| panic!("no line has '{part}':\n{screen}"));
    lines[first..].join("\n").trim_end().to_owned()
}

#[track_caller]
fn expect_screen(name: &str, screen: &str) {
    let file = format!("{}/tests/screens/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("SNAPSHOTS").as_deref() == Ok("overwrite") {
        fs::create_dir_all(format!("{}/tests/screens", env!("CARGO_MANIFEST_DIR"))).unwrap();
        fs::write(&file, format!("{screen}\n")).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let bare = |text: &str| without_times(&without_colors(text)).trim_end().to_owned();
    assert_eq!(bare(screen), bare(&expected), "{file}");
}

fn without_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// All stacks from the beginning, at 60, 80, 100 and 200 columns, in one run whose terminal is resized; and at its end.
#[test]
fn up_shows_waiting_running_and_done_stacks_at_every_width() {
    let world = World::of_golden("ha-gpu-efs");
    world.control(json!({"no_signal": ["Controllers"], "signal_timeout": 600}));
    let terminal = run(&world, 60, &up_line(&world));
    let block = |screen: &str| from_line(screen, FIRST_STEP);
    expect_screen("up-60.txt", &block(&terminal.wait_until_calm("etcd         launched 3/3, booted 3")));
    terminal.resize(80, ROWS);
    expect_screen("up-80.txt", &block(&terminal.wait_until_calm("create")));
    terminal.resize(200, ROWS);
    expect_screen("up-200.txt", &block(&terminal.wait_until_calm("━━━━━━━━━━━━━━")));
    terminal.resize(100, ROWS);
    let screen = terminal.wait_until_calm("create");
    for stack in ["network", "storage", "pool-cpu"] {
        let name = format!("research-{stack}  ");
        let times = block(&screen).lines().filter(|line| line.contains(&name)).count();
        assert_eq!(times, 1, "lines are drawn in their places again:\n{screen}");
    }
    // The picture of the README is made from this one.
    expect_screen("up-ha-gpu-efs.ansi", &block(&terminal.screen_with_colors()));
    world.control(json!({}));
    let (code, screen) = terminal.wait_for_end();
    assert_eq!(code, 0, "{screen}");
    expect_screen("up-done.txt", &block(&screen));
    assert!(terminal.shows_cursor());
}

#[test]
fn a_failed_stack_stays_on_the_screen_with_its_cause_below() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_create": {"EtcdVolume0": "The maximum number of volumes has been reached."}}));
    let (code, screen) = run(&world, 80, &up_line(&world)).wait_for_end();
    assert_eq!(code, 6, "{screen}");
    expect_screen("up-failed.txt", &from_line(&screen, FIRST_STEP));
    assert!(screen.contains("✗ minimal-control-plane  EtcdVolume0 CREATE_FAILED: The maximum"), "{screen}");
}

#[test]
fn destroy_looks_like_up() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let (code, screen) = run(&world, 80, &line(&world, "destroy --yes")).wait_for_end();
    assert_eq!(code, 0, "{screen}");
    let end = from_line(&screen, "deleting load balancers of Services");
    expect_screen("destroy-done.txt", &end);
}

#[test]
fn marks_replace_colours_where_there_are_none() {
    let world = World::of_golden("minimal");
    let terminal = run(&world, 80, &format!("NO_COLOR=1 {}", up_line(&world)));
    terminal.wait_for_end();
    let colored = from_line(&terminal.screen_with_colors(), FIRST_STEP);
    assert!(!colored.contains('\u{1b}'), "{colored:?}");
    assert!(colored.contains("✓ minimal-network"), "{colored}");
    let terminal = run(&world, 80, &up_line(&world));
    terminal.wait_for_end();
    let colored = from_line(&terminal.screen_with_colors(), FIRST_STEP);
    assert!(colored.contains("\u{1b}[32m="), "an unchanged stack has a green mark: {colored:?}");
}

/// A screen reader reads every line once; nothing is drawn again.
#[test]
fn a_plain_terminal_gets_every_line_once() {
    let world = World::of_golden("minimal");
    for choice in ["INFRA_PROGRESS=plain", "TERM=dumb", "CI=1"] {
        let (code, screen) = run(&world, 80, &format!("{choice} {}", up_line(&world))).wait_for_end();
        assert_eq!(code, 0, "{screen}");
        let lines: Vec<&str> = screen.lines().collect();
        let step = lines.iter().find(|line| line.contains(FIRST_STEP)).unwrap();
        assert_eq!((step.as_bytes()[2], step.as_bytes()[5]), (b':', b':'), "a time of day: {step}");
        assert!(!screen.contains(['▸', '✓', '━']), "{screen}");
        assert!(screen.contains(": minimal-network") || screen.contains(" minimal-network: "), "{screen}");
    }
}

/// Nothing of the terminal is changed that a command which is stopped or killed would have to restore.
#[test]
fn ctrl_z_fg_and_a_kill_leave_a_usable_terminal() {
    let world = World::of_golden("minimal");
    world.control(json!({"no_signal": ["Controllers"], "signal_timeout": 600}));
    let variables = variables(&world);
    let pairs = || variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let terminal = Tmux::shell(80, ROWS, pairs());
    terminal.wait_for("$");
    world.workspace.write("up.sh", format!("exec {}\n", up_line(&world)));
    let script = world.workspace.path("up.sh").display().to_string();
    terminal.press(["bash ", &script, "Enter"]);
    terminal.wait_for("Controllers");
    terminal.press(["C-z"]);
    terminal.wait_for("Stopped");
    terminal.press(["echo still; fg", "Enter"]);
    terminal.wait_for("still");
    // Below what the shell printed meanwhile, everything is drawn once more.
    let is_drawn =
        |screen: &str| screen.rsplit_once("still").is_some_and(|(_, after)| after.contains("Controllers"));
    let screen = terminal.wait_until("the stacks again", is_drawn);
    assert!(screen.matches(FIRST_STEP).count() >= 2, "{screen}");
    terminal.press(["C-z"]);
    terminal.wait_until("stopped again", |screen| screen.matches("Stopped").count() == 2);
    terminal.press(["kill -TERM %1; fg", "Enter"]);
    terminal.wait_for("Terminated");
    terminal.press(["echo usable", "Enter"]);
    let screen = terminal.wait_until("an answer", |screen| screen.lines().any(|line| line == "usable"));
    assert!(screen.contains("$ echo usable"), "what is typed can be seen:\n{screen}");
    assert!(terminal.shows_cursor());
}

#[test]
fn status_watch_is_one_screen_that_marks_changes() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let terminal = run(&world, 100, &line(&world, "status --watch"));
    let calm = terminal.wait_for("minimal: healthy");
    assert!(!calm.contains('»'), "{calm}");
    world.api.set_ready(false);
    let changed = terminal.wait_for("» minimal: NOT HEALTHY");
    assert!(
        changed.lines().any(|line| line.starts_with("» API") && line.contains("(was ready)")),
        "{changed}"
    );
    assert_eq!(changed.matches("Ctrl-C ends").count(), 1, "one screen:\n{changed}");
    terminal.press(["C-c"]);
    let (code, last) = terminal.wait_for_end();
    assert_eq!(code, 3, "{last}");
    assert!(last.contains("NOT HEALTHY"), "the last status stays:\n{last}");
    assert!(terminal.shows_cursor());
    world.api.set_ready(true);

    let terminal = run(&world, 100, &format!("INFRA_PROGRESS=plain {}", line(&world, "status --watch")));
    terminal.wait_for("minimal: healthy");
    world.api.set_ready(false);
    let changed = terminal.wait_for(" minimal: NOT HEALTHY");
    assert_eq!(changed.matches("stack ").count(), 3, "what has not changed is not read again:\n{changed}");
    assert!(changed.contains("(was ready)"), "{changed}");
    terminal.press(["C-c"]);
    assert_eq!(terminal.wait_for_end().0, 3);
}
