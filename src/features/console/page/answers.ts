/* What other features answer, as far as the pages show it. It is not imported, so that they can be deleted. */

/** A device that has asked for a seat of a license. */
export type Activation = {
  readonly activation_id: string;
  readonly license_key: string;
  readonly product_key: string;
  readonly device: string;
  readonly device_name: string | null;
  readonly state: 'active' | 'ended' | 'replaced' | 'blocked';
  readonly has_seat: boolean;
  readonly seat_until: string | null;
  readonly created_at: string;
  readonly renewed_at: string | null;
  readonly copied_at: string | null;
};

/** An agent that sends changes here, or follows license keys. */
export type Agent = {
  readonly number: number;
  readonly fingerprint: string;
  readonly account_id: string;
  readonly product_key: string | null;
  readonly followed: number;
  readonly waiting: boolean;
  readonly created_at: string;
  readonly seen_at: string;
};

/** An endpoint that gets events. */
export type Webhook = {
  readonly webhook_id: string;
  readonly url: string;
  readonly events: readonly string[] | null;
  readonly secret?: string;
  readonly state: 'active' | 'failing' | 'paused';
  readonly waiting: number;
  readonly last_success_at: string | null;
  readonly last_error: string | null;
};

export type Delivery = {
  readonly event_id: string;
  readonly type: string;
  readonly state: 'delivered' | 'failed';
  readonly attempts: number;
  readonly error: string | null;
  readonly at: string;
};

export type Attempt = {
  readonly webhook_id: string;
  readonly url: string;
  readonly delivered: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly duration_ms: number;
};
