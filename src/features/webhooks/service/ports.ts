import type { Attempt, WebhookEndpoint, WebhookEvent } from '../domain/webhook.ts';
import type { Result } from '../../../domain/problem/problem.ts';

/** Sends what a person asks for at once. */
export interface WebhookSender {
  /** Whether events may be sent to a URL now. */
  check(url: string): Promise<Result<unknown>>;
  /** Sends a test event. */
  test(endpoint: WebhookEndpoint): Promise<Attempt>;
  /** Sends a stored event again, under the same id. */
  replay(endpoint: WebhookEndpoint, event: WebhookEvent): Promise<Attempt>;
  /** Looks for something to deliver: an endpoint was added or resumed. */
  wake(): void;
}
