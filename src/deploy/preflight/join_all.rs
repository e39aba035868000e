//! Many calls in parallel, as many as a list has; `tokio::join!` takes a fixed number.

use std::future::poll_fn;
use std::task::Poll;

/// The outputs of all futures, in their order.
pub(super) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, answer) in &mut pending {
            if answer.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *answer = Some(value);
            }
        }
        if pending.iter().all(|(_, answer)| answer.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::join_all;

    #[tokio::test]
    async fn answers_come_in_the_order_of_the_questions() {
        let question = |number: u32| async move {
            for _ in number..5 {
                tokio::task::yield_now().await;
            }
            number
        };
        assert_eq!(join_all((0..5).map(question)).await, [0, 1, 2, 3, 4]);
        assert_eq!(join_all(Vec::<std::future::Ready<u32>>::new()).await, Vec::<u32>::new());
    }
}
