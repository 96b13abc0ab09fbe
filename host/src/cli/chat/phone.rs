//! `chat --approve-by-phone`: a page on the local network that answers the chat's questions, too.

use std::{future::pending, net::IpAddr, sync::Arc};

use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};
use sallyport_approval_page::ApprovalPage;
use sallyport_runtime::Host;
use tokio::sync::mpsc::UnboundedSender;

use crate::cli::{
    args::ChatArgs,
    exit::{CommandFailure, ExitStatus},
    observers::SideMessage,
    output::CliOutput,
};

/// Columns that the picture leaves free, so that the terminal does not wrap its lines.
const COLUMNS_FREE: usize = 1;

/// Opens the page if the user wants one, and shows its link.
pub(super) async fn open_approval_page(
    args: &ChatArgs,
    host: &Host,
    side_messages: Option<UnboundedSender<SideMessage>>,
    out: &CliOutput,
) -> Result<Option<ApprovalPage>, CommandFailure> {
    let Some(address) = args.approve_by_phone else { return Ok(None) };
    let printer = *out;
    let link_opened = move |browser: IpAddr| {
        let text = format!("a browser at {browser} answers approvals from now on");
        match &side_messages {
            Some(side_messages) => drop(side_messages.send(SideMessage::Info(text))),
            None => printer.print_note(&text),
        }
    };
    let questions = Arc::clone(&host.store().questions);
    let page = ApprovalPage::open(address, questions, link_opened).await.map_err(|error| {
        let failure = CommandFailure::new(ExitStatus::Failed, error.to_string());
        failure.with_hint("name an address of this machine: --approve-by-phone=192.168.1.5")
    })?;
    print_link(&page, out);
    Ok(Some(page))
}

/// Serves the page, if there is one, without end.
pub(super) async fn serve_approval_page(page: Option<ApprovalPage>) -> std::convert::Infallible {
    if let Some(page) = page {
        page.serve().await;
    }
    pending().await
}

fn print_link(page: &ApprovalPage, out: &CliOutput) {
    let link = page.link();
    out.print_note(
        "Approve by phone: open this link in a browser of the same network. It works once.",
    );
    let picture = out.stderr_columns().and_then(|columns| link_picture(&link, columns));
    picture.iter().for_each(|picture| out.print_block(picture));
    out.print_block(&link);
    out.print_note(&format!(
        "The browser does not know the certificate, which is made for this page. Its SHA-256 is {}",
        page.fingerprint()
    ));
}

/// The link as a picture, unless the terminal is too narrow for it. A terminal is mostly dark, so what
/// is light on paper is drawn.
fn link_picture(link: &str, columns: usize) -> Option<String> {
    let code = QrCode::with_error_correction_level(link, EcLevel::L).ok()?;
    let picture =
        code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    let is_narrow = picture.lines().any(|line| line.chars().count() + COLUMNS_FREE > columns);
    (!is_narrow).then_some(picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_drawn_where_it_fits() {
        let link = "https://192.168.100.123:43117/link/AAAAAAAAAAAAAAAAAAAAAA";
        let picture = link_picture(link, 80).unwrap();
        let columns = picture.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(columns <= 45 && picture.lines().count() <= 23, "{columns}\n{picture}");
        assert_eq!(link_picture(link, columns), None);
    }
}
