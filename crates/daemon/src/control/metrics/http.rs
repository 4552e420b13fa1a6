//! The little of HTTP/1.1 that a scrape needs: one request without a body, one answer, and the end of the connection. Bytes in,
//! bytes out.

use linkbraid_metrics::Format;
use std::rc::Rc;

/// The only path.
const PATH: &str = "/metrics";
/// The most headers of a request.
const HEADERS_MAX: usize = 64;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// The metrics.
    Metrics {
        /// As what.
        format: Format,
    },
    /// Something else, and the answer to it.
    Other(Answer),
}

/// An answer. The connection ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    status: &'static str,
    content_type: &'static str,
    /// One more header with its line end, or nothing.
    header: &'static str,
    /// Shared by those who get the same answer.
    text: Rc<str>,
}

impl Answer {
    /// One line of plain text.
    fn plain(status: &'static str, text: &str) -> Self {
        let content_type = "text/plain; charset=utf-8";
        Self { status, content_type, header: "", text: format!("{text}\n").into() }
    }

    pub(super) fn metrics(format: Format, text: String) -> Self {
        Self { status: "200 OK", content_type: format.content_type(), header: "", text: text.into() }
    }

    /// No records came in time.
    pub(super) fn busy() -> Self {
        Self::plain("503 Service Unavailable", "the daemon is busy or stopping")
    }

    pub(super) fn failed(cause: &str) -> Self {
        Self::plain("500 Internal Server Error", &format!("the metrics cannot be written: {cause}"))
    }

    /// What goes before the body.
    pub(super) fn head(&self) -> String {
        let Self { status, content_type, header, text } = self;
        let length = text.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{header}Connection: close\r\n\r\n"
        )
    }

    pub(super) fn body(&self) -> &str {
        &self.text
    }
}

/// Reads a request of at most `bytes_max` bytes; nothing while its end has not come.
pub(super) fn read(bytes: &[u8], bytes_max: usize) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let too_large = "431 Request Header Fields Too Large";
    let answer = match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => return Some(asked(&request)),
        Ok(httparse::Status::Partial) if bytes.len() <= bytes_max => return None,
        Ok(httparse::Status::Partial) => {
            Answer::plain(too_large, &format!("a request has at most {bytes_max} bytes"))
        }
        Err(httparse::Error::TooManyHeaders) => {
            Answer::plain(too_large, &format!("a request has at most {HEADERS_MAX} headers"))
        }
        Err(error) => Answer::plain("400 Bad Request", &format!("this is no request of HTTP/1: {error}")),
    };
    Some(Asked::Other(answer))
}

fn asked(request: &httparse::Request<'_, '_>) -> Asked {
    let path = request.path.unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    if path != PATH {
        return Asked::Other(Answer::plain("404 Not Found", "the metrics are at /metrics"));
    }
    if request.method != Some("GET") {
        let refused = Answer::plain("405 Method Not Allowed", "the metrics can be read only, with GET");
        return Asked::Other(Answer { header: "Allow: GET\r\n", ..refused });
    }
    let accept = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("accept"));
    let accept = accept.map_or("", |header| std::str::from_utf8(header.value).unwrap_or_default());
    Asked::Metrics { format: Format::accepted(accept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 200;

    fn status(bytes: &[u8]) -> String {
        match read(bytes, MAX) {
            None => "more".to_owned(),
            Some(Asked::Metrics { format }) => format!("{format:?}"),
            Some(Asked::Other(answer)) => answer.status.to_owned(),
        }
    }

    #[test]
    fn only_the_metrics_can_be_read() {
        let get = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(status(get), "Text");
        for end in 0..get.len() {
            assert_eq!(status(&get[..end]), "more");
        }
        let asked =
            b"GET /metrics?x=1 HTTP/1.0\r\nACCEPT: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n";
        assert_eq!(status(asked), "OpenMetrics");
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status(b"GET /metrics/ HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        assert_eq!(status(b"HEAD /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        assert_eq!(status(b"\x16\x03\x01\x02\x00"), "400 Bad Request");
        assert_eq!(status(b"GET /metrics HTTP/2.0\r\n\r\n"), "400 Bad Request");
        assert_eq!(status(b"{\"show\":{}}\n"), "400 Bad Request");
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX));
        assert_eq!(status(long.as_bytes()), "431 Request Header Fields Too Large");
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(status(many.as_bytes()), "431 Request Header Fields Too Large");
    }

    proptest::proptest! {
        /// Whatever comes: more is read up to the limit, and what is refused gets an answer.
        #[test]
        fn no_request_is_read_beyond_the_limit(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            match read(&bytes, MAX) {
                None => proptest::prop_assert!(bytes.len() <= MAX),
                Some(Asked::Metrics { .. }) => proptest::prop_assert!(bytes.starts_with(b"GET /metrics")),
                Some(Asked::Other(answer)) => proptest::prop_assert!(answer.head().starts_with("HTTP/1.1 4")),
            }
        }
    }

    #[test]
    fn an_answer_says_how_long_it_is_and_that_it_is_the_last() {
        let Some(Asked::Other(answer)) = read(b"PUT /metrics HTTP/1.1\r\n\r\n", MAX) else {
            panic!("refused")
        };
        let (head, body) = (answer.head(), answer.body());
        let head = head.strip_suffix("\r\n\r\n").unwrap();
        assert_eq!(body, "the metrics can be read only, with GET\n");
        let lines: Vec<&str> = head.split("\r\n").collect();
        let length = format!("Content-Length: {}", body.len());
        let wanted = [
            "HTTP/1.1 405 Method Not Allowed",
            "Content-Type: text/plain; charset=utf-8",
            &length,
            "Allow: GET",
            "Connection: close",
        ];
        assert_eq!(lines, wanted);
    }
}
