//! Enums of texts that AWS answers with, among which there may be new ones.

/// Makes an enum of texts, with one more variant for a text that is not in the list.
macro_rules! text_enum {
    ($(#[$about:meta])* $name:ident { $($variant:ident $text:literal)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
            /// A text that this list does not have.
            Unknown(String),
        }

        impl $name {
            /// The text, in the words of AWS.
            #[must_use]
            pub(crate) fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    _ => Self::Unknown(text.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <String as schemars::JsonSchema>::json_schema(generator)
            }
        }
    };
}
pub(super) use text_enum;
