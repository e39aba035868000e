//! A reader that has left: `infra job logs -f | head` ends when `head` does, even if nothing more is printed.

use std::fs::File;
use std::future::pending;
use std::io;
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::net::unix::pipe;

/// Returns when nobody reads stdout any more; never if that cannot be seen, as of a file.
pub(in crate::cli) async fn reader_left() {
    let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() else { return pending().await };
    // Nothing is written through it, so that the pipe stays as it is for everyone who shares it.
    let Ok(watched) = pipe::Sender::from_file_unchecked(File::from(stdout)) else { return pending().await };
    loop {
        match watched.ready(Interest::ERROR).await {
            Ok(ready) if ready.is_error() || ready.is_write_closed() => return,
            Ok(_) => {}
            Err(_) => return pending().await,
        }
    }
}
