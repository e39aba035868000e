//! A plan as text for a terminal, as Markdown for a pull request, as a page, and as JSON for a program.
//!
//! No view shows the content of user data, only how it changes files on the machine.

mod cost_change;
mod document;
mod html;
mod lines;
mod machine_lines;
mod markdown;
mod text;
mod view;

use crate::blueprint::Blueprint;
use crate::cli::terminal::styled_text::StyledText;
pub(super) use cost_change::CostChange;
pub(super) use document::PlanDocument;
pub(super) use view::{PlanView, mask_user_data};

impl PlanView<'_> {
    /// For a terminal, with colours and without a line end.
    pub(super) fn text(&self) -> StyledText {
        text::plan_as_text(self)
    }

    /// For a pull request, without a line end.
    pub(super) fn markdown(&self) -> String {
        markdown::plan_as_markdown(self)
    }

    /// For a browser.
    pub(super) fn html(&self, blueprint: &Blueprint) -> String {
        html::plan_as_html(self, blueprint)
    }

    /// For a program.
    pub(super) fn document(&self) -> PlanDocument {
        PlanDocument::new(self)
    }
}

#[cfg(test)]
mod tests;
