//! Objects of any bucket that the caller may read: what is there, and signed links by which others fetch it without credentials.

use std::fmt;
use std::time::Duration;

use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::types::{Object, ObjectStorageClass, OptionalObjectAttributes};

use super::actions;
use super::{AwsError, Cause, Clients};

/// S3 has a name without a region for every bucket; calls begin there if no region is known.
const FIRST_REGION: &str = "us-east-1";

/// A bucket of whichever account, reached in its own region.
#[derive(Clone, Debug)]
pub(crate) struct DataBucket {
    clients: Clients,
    name: String,
}

/// An object as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataObject {
    /// The key of the object.
    pub key: String,
    /// The size in bytes.
    pub size: u64,
    /// The entity tag, with its quotes.
    pub etag: String,
    /// When it was written, in seconds since 1970.
    pub modified: u64,
    /// The storage class that it must be restored from before it can be read, if it must.
    pub archived_in: Option<String>,
}

/// A URL that lets whoever has it read one object for a while.
pub(crate) struct SignedLink(String);

impl SignedLink {
    /// The URL, for whoever is to use it and for nobody else.
    #[must_use]
    pub(crate) fn reveal(self) -> String {
        self.0
    }
}

impl fmt::Debug for SignedLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SignedLink(…)")
    }
}

/// What S3 means when it refuses a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRefusal {
    /// The link is too old.
    Expired,
    /// The credentials that signed the link are not accepted, or not any more.
    Credentials,
    /// The object must be restored before it can be read.
    Archived,
    /// The caller may not read the object, or not decrypt it.
    Denied,
    /// Something else.
    Other,
}

impl LinkRefusal {
    /// The meaning of a code and a message of S3.
    #[must_use]
    pub(crate) fn of(code: &str, message: &str) -> Self {
        match code {
            "AccessDenied" if message.contains("expired") => Self::Expired,
            "ExpiredToken"
            | "InvalidToken"
            | "InvalidAccessKeyId"
            | "RequestTimeTooSkewed"
            | "SignatureDoesNotMatch"
            | "TokenRefreshRequired" => Self::Credentials,
            "InvalidObjectState" => Self::Archived,
            // Keys of KMS that are disabled, pending deletion or unknown.
            "AccessDenied" | "AllAccessDisabled" => Self::Denied,
            code if code.starts_with("KMS.") => Self::Denied,
            _ => Self::Other,
        }
    }
}

impl Clients {
    /// A bucket, whatever its region: S3 says where it is when it is asked elsewhere.
    pub(crate) async fn data_bucket(&self, name: &str) -> Result<DataBucket, AwsError> {
        let clients = if self.region().is_some() { self.clone() } else { self.in_region(FIRST_REGION) };
        let name = name.to_owned();
        let answer = clients.s3.list_objects_v2().bucket(&name).max_keys(1).send().await;
        let Err(error) = answer else { return Ok(DataBucket { clients, name }) };
        let own = clients.region().unwrap_or_default();
        let home = error.raw_response().and_then(|raw| raw.headers().get("x-amz-bucket-region"));
        if let Some(home) = home.filter(|home| *home != own) {
            return Ok(DataBucket { clients: clients.in_region(home), name });
        }
        match AwsError::of(actions::S3_LIST_BUCKET)(error) {
            // Whoever may not list the whole bucket may list what is below a prefix.
            error if error.cause == Cause::Refused => Ok(DataBucket { clients, name }),
            error => Err(error),
        }
    }
}

impl DataBucket {
    /// The object of this very key, if it exists.
    pub(crate) async fn object(&self, key: &str) -> Result<Option<DataObject>, AwsError> {
        // In the order of keys it is the first that begins with itself. HEAD would give no reason when it is refused.
        let call = self.clients.s3.list_objects_v2().bucket(&self.name).prefix(key).max_keys(1);
        let call = call.optional_object_attributes(OptionalObjectAttributes::RestoreStatus);
        let answer = call.send().await.map_err(AwsError::of(actions::S3_LIST_BUCKET))?;
        let objects = answer.contents.unwrap_or_default();
        Ok(objects.into_iter().filter_map(data_object).find(|object| object.key == key))
    }

    /// All objects whose keys begin so; none if there are more than `most`.
    pub(crate) async fn objects_below(
        &self,
        prefix: &str,
        most: usize,
    ) -> Result<Option<Vec<DataObject>>, AwsError> {
        let mut found = Vec::new();
        let mut token = None;
        loop {
            let call = self.clients.s3.list_objects_v2().bucket(&self.name).prefix(prefix);
            let call = call.optional_object_attributes(OptionalObjectAttributes::RestoreStatus);
            let call = call.set_continuation_token(token);
            let answer = call.send().await.map_err(AwsError::of(actions::S3_LIST_BUCKET))?;
            found.extend(answer.contents.unwrap_or_default().into_iter().filter_map(data_object));
            if found.len() > most {
                return Ok(None);
            }
            token = answer.next_continuation_token;
            if answer.is_truncated != Some(true) || token.is_none() {
                return Ok(Some(found));
            }
        }
    }

    /// A link to an object, which is accepted for this long, or until the credentials that sign it expire.
    pub(crate) async fn sign_link(&self, key: &str, life: Duration) -> Result<SignedLink, AwsError> {
        let presigning = PresigningConfig::expires_in(life)
            .map_err(|error| AwsError::incomplete(actions::S3_GET_OBJECT, error.to_string()))?;
        let call = self.clients.s3.get_object().bucket(&self.name).key(key);
        let signed = call.presigned(presigning).await.map_err(AwsError::of(actions::S3_GET_OBJECT));
        // Nothing is sent to S3: all that can be missing is credentials.
        let signed = signed.map_err(|error| AwsError { cause: Cause::Credentials, ..error })?;
        Ok(SignedLink(signed.uri().to_owned()))
    }
}

fn data_object(object: Object) -> Option<DataObject> {
    let is_restored = object.restore_status.as_ref().is_some_and(|status| {
        status.is_restore_in_progress != Some(true) && status.restore_expiry_date.is_some()
    });
    let class = object.storage_class.filter(|class| {
        matches!(class, ObjectStorageClass::Glacier | ObjectStorageClass::DeepArchive) && !is_restored
    });
    Some(DataObject {
        key: object.key?,
        size: object.size.and_then(|size| u64::try_from(size).ok())?,
        etag: object.e_tag?,
        modified: object.last_modified.and_then(|time| u64::try_from(time.secs()).ok())?,
        archived_in: class.map(|class| class.as_str().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::{LinkRefusal, SignedLink};

    #[test]
    fn debug_output_hides_signed_links() {
        let link = SignedLink("https://bucket.s3.amazonaws.com/key?X-Amz-Signature=1".to_owned());
        assert_eq!(format!("{link:?}"), "SignedLink(…)");
    }

    #[test]
    fn refusals_of_links_are_understood() {
        let cases = [
            ("AccessDenied", "Request has expired", LinkRefusal::Expired),
            ("AccessDenied", "Access Denied", LinkRefusal::Denied),
            ("ExpiredToken", "The provided token has expired.", LinkRefusal::Credentials),
            ("KMS.DisabledException", "arn is disabled.", LinkRefusal::Denied),
            (
                "InvalidObjectState",
                "The operation is not valid for the object's storage class",
                LinkRefusal::Archived,
            ),
            ("NoSuchThing", "", LinkRefusal::Other),
        ];
        for (code, message, meaning) in cases {
            assert_eq!(LinkRefusal::of(code, message), meaning, "{code}");
        }
    }
}
