//! How old an image is, and until when machines can be started from it.

use time::{Date, Month, OffsetDateTime};

use super::image_source::FLATCAR_OWNER;
use crate::aws::Image;
use crate::plural::count_of;

/// Flatcar un-publishes images that are older: flatcar-website, content/docs/latest/deploy/cloud/aws-ec2.md.
const MONTHS_PUBLISHED: u8 = 9;
/// From this age on a replacement is advised, which leaves three months for it.
const MONTHS_BEFORE_WARNING: u8 = 6;

/// The life of an image as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageLife {
    /// The day on which the image was created, and how many days ago that was.
    pub created: Option<(Date, i64)>,
    /// The day from which AWS calls the image deprecated.
    pub deprecation: Option<Date>,
    /// The day about which the publisher deletes the image; none if it is not known to do so.
    pub deletion: Option<Date>,
    today: Date,
    image: String,
}

/// Why the image should be replaced soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageConcern {
    /// What is wrong.
    pub what: String,
    /// Why it matters.
    pub why: &'static str,
}

/// What to do about an image that is deleted or will be.
pub(crate) const IMAGE_FIX: &str = "run `infra up --upgrade-os`, which locks the newest image of the channel";

impl ImageLife {
    /// The life of an image. Only Flatcar's own images are deleted by Flatcar: a copy stays until its owner deletes it.
    #[must_use]
    pub(crate) fn of(image: &Image, now: OffsetDateTime) -> Self {
        let today = now.date();
        let created = image.created.map(OffsetDateTime::date);
        let is_flatcars = image.owner == FLATCAR_OWNER;
        Self {
            created: created.map(|day| (day, (today - day).whole_days())),
            deprecation: image.deprecated.map(OffsetDateTime::date),
            deletion: created.filter(|_| is_flatcars).map(|day| months_later(day, MONTHS_PUBLISHED)),
            today,
            image: format!("the image {} ({})", image.id, image.name),
        }
    }

    /// Why the image should be replaced soon, if there is a reason.
    #[must_use]
    pub(crate) fn concern(&self) -> Option<ImageConcern> {
        let Self { today, image, .. } = self;
        if let (Some((created, days)), Some(deletion)) = (self.created, self.deletion)
            && *today >= months_later(created, MONTHS_BEFORE_WARNING)
        {
            let age = count_of(days, "day");
            let end = if *today < deletion {
                format!("Flatcar deletes it about {deletion}")
            } else {
                format!("Flatcar may delete it any day, as it does after {MONTHS_PUBLISHED} months")
            };
            return Some(ImageConcern {
                what: format!("{image} is {age} old, and {end}"),
                why: "once it is gone no machine can be started: a lost one is not replaced, and no pool grows",
            });
        }
        let since = self.deprecation.filter(|day| day <= today)?;
        Some(ImageConcern {
            what: format!("{image} has been deprecated since {since}"),
            why: "its owner advises against it and may delete it; then no machine can be started",
        })
    }
}

/// The same day some months later, or the last one of a shorter month.
fn months_later(date: Date, months: u8) -> Date {
    let count = u8::from(date.month()) - 1 + months;
    let (year, month) = (date.year() + i32::from(count / 12), count % 12 + 1);
    let month = Month::try_from(month).unwrap_or(Month::January);
    let day = date.day().min(month.length(year));
    Date::from_calendar_date(year, month, day).unwrap_or(date)
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::{ImageLife, months_later};
    use crate::aws::Image;

    fn image(owner: &str) -> Image {
        Image {
            id: "ami-1".to_owned(),
            name: "Flatcar-stable-4593.2.5-hvm".to_owned(),
            owner: owner.to_owned(),
            created: Some(datetime!(2026-01-31 12:00 UTC)),
            deprecated: Some(datetime!(2028-01-31 12:00 UTC)),
            root_device: "/dev/xvda".to_owned(),
            smallest_gib: None,
            architecture: "x86_64".to_owned(),
            state: "available".to_owned(),
        }
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        assert_eq!(months_later(date!(2026 - 01 - 31), 9), date!(2026 - 10 - 31));
        assert_eq!(months_later(date!(2026 - 05 - 31), 9), date!(2027 - 02 - 28));
        assert_eq!(months_later(date!(2027 - 05 - 31), 9), date!(2028 - 02 - 29));
        assert_eq!(months_later(date!(2026 - 12 - 01), 6), date!(2027 - 06 - 01));
    }

    #[test]
    fn flatcars_own_image_is_a_concern_from_six_months_on() {
        let at = |now| ImageLife::of(&image("075585003325"), now);
        let concern = |now| at(now).concern().map(|concern| concern.what);
        assert_eq!(at(datetime!(2026-02-01 00:00 UTC)).created, Some((date!(2026 - 01 - 31), 1)));
        assert_eq!(concern(datetime!(2026-07-30 23:59 UTC)), None);
        let text = concern(datetime!(2026-07-31 00:00 UTC)).unwrap_or_default();
        assert!(text.ends_with("is 181 days old, and Flatcar deletes it about 2026-10-31"), "{text}");
        let text = concern(datetime!(2026-10-31 00:00 UTC)).unwrap_or_default();
        assert!(text.ends_with("Flatcar may delete it any day, as it does after 9 months"), "{text}");
    }

    #[test]
    fn a_copy_is_a_concern_once_it_is_deprecated() {
        let at = |now| ImageLife::of(&image("111122223333"), now);
        assert_eq!(at(datetime!(2026-02-01 00:00 UTC)).deletion, None);
        assert_eq!(at(datetime!(2028-01-30 00:00 UTC)).concern(), None);
        let concern = at(datetime!(2028-01-31 00:00 UTC)).concern().map(|concern| concern.what);
        assert!(concern.is_some_and(|text| text.ends_with("has been deprecated since 2028-01-31")));
        let unknown = Image { created: None, deprecated: None, ..image("075585003325") };
        assert_eq!(ImageLife::of(&unknown, datetime!(2030-01-31 00:00 UTC)).concern(), None);
    }
}
