//! The directory that holds keys and certificates: private, locked while it is changed, every pair of files whole.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use zeroize::Zeroizing;

use super::{CredentialsError, SecretText};
use crate::confined_directory::{ConfinedDirectory, ConfinedError};
use crate::durable_file::{self, Access};

const LOCK: &str = ".lock";
/// A key and its certificate in one file, there only while the two are being written.
const PENDING_SUFFIX: &str = ".pending";
const CERTIFICATE_BEGINS: &str = "-----BEGIN CERTIFICATE-----";

/// An open credentials directory. While it is open, no other `infra` changes it.
#[derive(Debug)]
pub struct CredentialStore {
    directory: PathBuf,
    /// Released by the operating system when the process ends, however it ends.
    _lock: File,
}

impl CredentialStore {
    /// Opens the directory, and creates it if it does not exist. If another `infra` has it open, `on_wait` is called and then this
    /// waits.
    pub fn open(directory: &Path, on_wait: impl FnOnce()) -> Result<Self, CredentialsError> {
        let failed = |doing: &'static str, path: &Path| {
            let path = path.to_owned();
            move |reason| CredentialsError::Disk { doing, path, reason }
        };
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed("make", directory)(error))?,
            _ => {}
        }
        if directory.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return Err(ConfinedError::Link { path: directory.to_owned() }.into());
        }
        // Only root must check before it opens anything: the operating system keeps every other user out of someone else's directory.
        let is_root = geteuid().is_root();
        if is_root {
            check_owner(directory)?;
        }
        let lock_path = ConfinedDirectory::new(directory).path(LOCK)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock_path);
        let lock = lock.map_err(failed("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                on_wait();
                lock.lock().map_err(failed("lock", &lock_path))?;
            }
            Err(TryLockError::Error(reason)) => Err(failed("lock", &lock_path)(reason))?,
        }
        let store = Self { directory: directory.to_owned(), _lock: lock };
        store.refuse_links()?;
        if is_root {
            store.check_owners()?;
        }
        store.tighten().map_err(failed("make private", directory))?;
        store.check_owners()?;
        durable_file::remove_leftovers(directory).map_err(failed("tidy up", directory))?;
        store.finish_pending()?;
        Ok(store)
    }

    /// Where a certificate is.
    #[must_use]
    pub fn certificate_path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.pem"))
    }

    /// Where a key is.
    #[must_use]
    pub fn key_path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}-key.pem"))
    }

    /// Where any other file is.
    #[must_use]
    pub fn file_path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The text of a certificate, if it exists.
    pub fn read_certificate(&self, name: &str) -> Result<Option<String>, CredentialsError> {
        let bytes = read_file(&self.certificate_path(name))?;
        // Bytes that are not text are judged, and replaced, like any other text that is no certificate.
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A key, if it exists.
    pub fn read_key(&self, name: &str) -> Result<Option<SecretText>, CredentialsError> {
        let bytes = read_file(&self.key_path(name))?;
        Ok(bytes.map(|bytes| SecretText::new(String::from_utf8_lossy(&bytes).into_owned())))
    }

    /// The bytes of a secret, if it exists.
    pub fn read_secret(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, CredentialsError> {
        read_file(&self.file_path(name))
    }

    /// Writes a key and its certificate so that the next `infra` finds both old or both new.
    pub(super) fn write_pair(
        &self,
        name: &str,
        certificate: &str,
        key: &SecretText,
    ) -> Result<(), CredentialsError> {
        let pending = self.pending_path(name);
        let both = Zeroizing::new(format!("{}{certificate}", key.expose()));
        durable_file::replace(&pending, both.as_bytes(), Access::Private)?;
        self.finish_pair(name, &pending, certificate, key.expose())
    }

    /// Writes a public key or certificate.
    pub(super) fn write_public(&self, name: &str, text: &str) -> Result<(), CredentialsError> {
        Ok(durable_file::replace(&self.certificate_path(name), text.as_bytes(), Access::Public)?)
    }

    /// Writes a private key that has no certificate.
    pub(super) fn write_key(&self, name: &str, key: &SecretText) -> Result<(), CredentialsError> {
        Ok(durable_file::replace(&self.key_path(name), key.expose().as_bytes(), Access::Private)?)
    }

    /// Writes a secret.
    pub(super) fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), CredentialsError> {
        Ok(durable_file::replace(&self.file_path(name), bytes, Access::Private)?)
    }

    /// Nothing in the directory may be a link: everything in it is read, written and changed by name.
    fn refuse_links(&self) -> Result<(), CredentialsError> {
        let files = ConfinedDirectory::new(&self.directory);
        for entry in files.entries("")? {
            files.path(entry.file_name())?;
        }
        Ok(())
    }

    /// Every file must be the user's own: what someone else put there, a planted authority above all, is not used.
    fn check_owners(&self) -> Result<(), CredentialsError> {
        for entry in ConfinedDirectory::new(&self.directory).entries("")? {
            check_owner(&entry.path())?;
        }
        Ok(())
    }

    /// Closes what a careless copy or checkout may have left open to others.
    fn tighten(&self) -> io::Result<()> {
        restrict_access(&self.directory, 0o700)?;
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with("-key.pem") || name.ends_with(".key") {
                restrict_access(&entry.path(), 0o600)?;
            } else if entry.file_type()?.is_file() {
                restrict_access(&entry.path(), 0o644)?;
            }
        }
        Ok(())
    }

    /// Completes pairs that a killed run had begun to write.
    fn finish_pending(&self) -> Result<(), CredentialsError> {
        let failed = |reason| CredentialsError::Disk { doing: "list", path: self.directory.clone(), reason };
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let file_name = entry.map_err(failed)?.file_name();
            let file_name = file_name.to_string_lossy();
            let name = file_name.strip_prefix('.').and_then(|name| name.strip_suffix(PENDING_SUFFIX));
            let Some(name) = name else { continue };
            let pending = self.pending_path(name);
            let Some(bytes) = read_file(&pending)? else { continue };
            let both = Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned());
            if let Some(middle) = both.find(CERTIFICATE_BEGINS) {
                self.finish_pair(name, &pending, &both[middle..], &both[..middle])?;
            }
        }
        Ok(())
    }

    fn finish_pair(
        &self,
        name: &str,
        pending: &Path,
        certificate: &str,
        key: &str,
    ) -> Result<(), CredentialsError> {
        durable_file::replace(&self.key_path(name), key.as_bytes(), Access::Private)?;
        durable_file::replace(&self.certificate_path(name), certificate.as_bytes(), Access::Public)?;
        let failed = |reason| CredentialsError::Disk { doing: "remove", path: pending.to_owned(), reason };
        std::fs::remove_file(pending).map_err(failed)
    }

    fn pending_path(&self, name: &str) -> PathBuf {
        self.directory.join(format!(".{name}{PENDING_SUFFIX}"))
    }
}

fn check_owner(path: &Path) -> Result<(), CredentialsError> {
    let failed = |reason| CredentialsError::Disk { doing: "read", path: path.to_owned(), reason };
    let (owner, user) = (path.symlink_metadata().map_err(failed)?.uid(), geteuid().as_raw());
    if owner == user {
        Ok(())
    } else {
        Err(CredentialsError::ForeignOwner { path: path.to_owned(), owner, user })
    }
}

fn restrict_access(path: &Path, mode: u32) -> io::Result<()> {
    let current = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if current & !mode == 0 { Ok(()) } else { std::fs::set_permissions(path, Permissions::from_mode(mode)) }
}

fn read_file(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, CredentialsError> {
    let failed = |reason| CredentialsError::Disk { doing: "read", path: path.to_owned(), reason };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Zeroizing::new(Vec::new());
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}
