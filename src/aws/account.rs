//! Whose account this is, and which regions it can use.

use super::actions;
use super::{AwsError, CallerIdentity, Clients};

impl Clients {
    /// Asks AWS who is calling, once in a run; needs credentials, but no permission.
    pub(crate) async fn caller_identity(&self) -> Result<CallerIdentity, AwsError> {
        self.caller.get_or_try_init(|| self.read_caller_identity()).await.cloned()
    }

    /// The account that must own a bucket before anything is read from it or written to it: the caller's.
    pub(super) async fn bucket_owner(&self) -> Result<String, AwsError> {
        Ok(self.caller_identity().await?.account)
    }

    /// The regions that the account can use: those that need no opt-in, and those that it has opted in to.
    pub(crate) async fn regions(&self) -> Result<Vec<String>, AwsError> {
        let answer = self.ec2.describe_regions().send().await;
        let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_REGIONS))?;
        let regions = answer.regions.unwrap_or_default().into_iter();
        Ok(regions.filter_map(|region| region.region_name).collect())
    }

    async fn read_caller_identity(&self) -> Result<CallerIdentity, AwsError> {
        let answer = self
            .sts
            .get_caller_identity()
            .send()
            .await
            .map_err(AwsError::of(actions::STS_GET_CALLER_IDENTITY))?;
        Ok(CallerIdentity {
            account: answer.account.unwrap_or_default(),
            arn: answer.arn.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};

    use super::super::configuration::sdk_behavior;
    use super::super::{AwsConnection, Cause, Clients};

    const IDENTITY: &str = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
        <GetCallerIdentityResult><Arn>arn:aws:iam::111122223333:user/ada</Arn><UserId>AIDA</UserId>\
        <Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>";

    fn refusal(code: &str) -> String {
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>\
             <RequestId>req-1</RequestId></ErrorResponse>"
        )
    }

    /// Answers each request with the next of `answers` (the last one again and again) and counts them.
    fn serve(answers: Vec<(u16, String)>) -> std::io::Result<(String, Arc<AtomicUsize>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut request = [0; 8192];
                let _ = stream.read(&mut request);
                let index = counter.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                let (status, body) = &answers[index];
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nx-amzn-requestid: req-1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Ok((url, count))
    }

    async fn clients(endpoint_url: String) -> Clients {
        let contents = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n";
        let files = EnvConfigFiles::builder().with_contents(EnvConfigFileKind::Credentials, contents).build();
        let connection = AwsConnection {
            region: Some("us-west-2".to_owned()),
            endpoint_url: Some(endpoint_url),
            profile: None,
            release_server: None,
            tempo: crate::waiting::Tempo::default(),
        };
        let loader = aws_config::defaults(sdk_behavior()).profile_files(files).profile_name("default");
        Clients::from_configuration(&connection.apply(loader).load().await, None)
    }

    #[tokio::test]
    async fn the_endpoint_and_region_are_those_asked_for() -> Result<(), Box<dyn std::error::Error>> {
        let (url, _) = serve(vec![(200, IDENTITY.to_owned())])?;
        let clients = clients(url).await;
        assert_eq!(clients.region(), Some("us-west-2"));
        assert_eq!(clients.caller_identity().await?.account, "111122223333");
        Ok(())
    }

    #[tokio::test]
    async fn an_expired_token_is_reported_at_once_and_not_retried() -> Result<(), Box<dyn std::error::Error>>
    {
        let (url, count) = serve(vec![(403, refusal("ExpiredToken"))])?;
        let error = clients(url).await.caller_identity().await.err().ok_or("it was accepted")?;
        assert_eq!(error.cause, Cause::Credentials);
        assert_eq!(error.to_string(), "sts:GetCallerIdentity: ExpiredToken: no (request req-1)");
        assert_eq!(count.load(Ordering::SeqCst), 1);
        Ok(())
    }

    #[tokio::test]
    async fn a_call_that_fails_once_is_retried() -> Result<(), Box<dyn std::error::Error>> {
        let (url, count) = serve(vec![(500, refusal("InternalFailure")), (200, IDENTITY.to_owned())])?;
        assert_eq!(clients(url).await.caller_identity().await?.arn, "arn:aws:iam::111122223333:user/ada");
        assert_eq!(count.load(Ordering::SeqCst), 2);
        Ok(())
    }

    #[tokio::test]
    async fn an_unreachable_endpoint_is_named() -> Result<(), Box<dyn std::error::Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("http://127.0.0.1:{port}");
        let mut configuration = clients(url).await;
        configuration.sts = aws_sdk_sts::Client::from_conf(
            configuration
                .sts
                .config()
                .to_builder()
                .retry_config(aws_config::retry::RetryConfig::disabled())
                .build(),
        );
        let error = configuration.caller_identity().await.err().ok_or("the call was answered")?;
        assert_eq!(error.cause, Cause::Unreachable);
        Ok(())
    }
}
