//! A plain client of the stand-in for AWS: it reads what the binary has done, and creates what the binary should find.

use serde_json::Value;

use super::http::{Message, ask, percent_encode};
use super::{authorization, element};

/// A plain client of the stand-in for AWS, in one account.
pub struct Aws {
    pub(super) url: String,
    pub(super) account: String,
    pub region: String,
}

impl Aws {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What a call of a service that takes forms answers, be it an error.
    pub fn post(&self, service: &str, region: &str, form: &[(&str, &str)]) -> String {
        let pairs =
            form.iter().map(|(key, value)| format!("{}={}", percent_encode(key), percent_encode(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        self.send(service, region, "POST", "/", &body).text()
    }

    /// The state of a stack, also of a deleted one that is asked for by its id.
    pub fn stack_status(&self, name: &str) -> Option<String> {
        let form = [("Action", "DescribeStacks"), ("Version", "2010-05-15"), ("StackName", name)];
        let answer = self.post("cloudformation", &self.region, &form);
        element(&answer, "StackStatus").map(str::to_owned)
    }

    #[track_caller]
    pub fn create_bucket(&self, name: &str) {
        // The oldest region is the one that must not be named.
        let body = match self.region.as_str() {
            "us-east-1" => String::new(),
            region => format!(
                "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
            ),
        };
        let answer = self.send("s3", &self.region, "PUT", &format!("/{name}"), &body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }

    /// What a service that speaks JSON answers.
    pub fn ask_json(&self, service: &str, target: &str, question: &Value) -> Value {
        let who = authorization(&self.account, &self.region, service);
        let headers = [
            ("Authorization", who.as_str()),
            ("Content-Type", "application/x-amz-json-1.1"),
            ("X-Amz-Target", target),
        ];
        let request = Message::request("POST", "/", &headers, question.to_string().as_bytes());
        serde_json::from_str(&ask(&self.url, request).unwrap().text()).unwrap()
    }

    /// Any other request, as `("s3", "us-west-2", "GET", "/bucket/key", "")`.
    pub fn send(&self, service: &str, region: &str, method: &str, target: &str, body: &str) -> Message {
        let who = authorization(&self.account, region, service);
        let kind = if service == "s3" { "application/xml" } else { "application/x-www-form-urlencoded" };
        let headers = [("Authorization", who.as_str()), ("Content-Type", kind)];
        ask(&self.url, Message::request(method, target, &headers, body.as_bytes())).unwrap()
    }
}
