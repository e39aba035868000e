//! Texts as parts of a path or query.

const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";

/// A text with everything escaped that could mean something else in a path or query.
pub(super) fn encode_path_segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for half in [byte >> 4, byte & 15] {
                encoded.push(char::from(HEXADECIMAL[usize::from(half)]));
            }
        }
    }
    encoded
}

/// A path without its query, for messages.
pub(super) fn without_query(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{encode_path_segment, without_query};

    #[test]
    fn what_could_mean_something_else_is_escaped() {
        assert_eq!(encode_path_segment("my-pod_1.a~"), "my-pod_1.a~");
        assert_eq!(encode_path_segment("a/b?c=d&é"), "a%2Fb%3Fc%3Dd%26%C3%A9");
    }

    #[test]
    fn messages_name_the_path_alone() {
        assert_eq!(without_query("/api/v1/nodes?limit=500"), "/api/v1/nodes");
        assert_eq!(without_query("/api/v1/nodes"), "/api/v1/nodes");
    }
}
