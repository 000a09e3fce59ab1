import { licenseAfter, type License, type LicenseTrigger } from '../../../src/domain/license.ts';
import type { LicenseOperationKind } from '../../../src/domain/outbox/operation.ts';
import type { Ambiguous, Applied, NotApplied, Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { Keyed, LatchkeyRequest, SyncUpstream, UpstreamChange } from '../../../src/service/ports.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The licenses of the upstream. */
type Vendor = { readonly licenses: Map<string, License> };

export const lostAnswer: Ambiguous = {
  outcome: 'ambiguous',
  status: null,
  detail: 'the answer was lost',
  retryAfterMs: null,
};

export const hidden: NotApplied = {
  outcome: 'not_applied',
  reason: 'missing',
  status: 404,
  detail: 'HTTP 404',
  retryAfterMs: null,
};

export function refusedWith(code: string): NotApplied {
  return { outcome: 'not_applied', reason: 'rejected', status: 409, detail: code, code, retryAfterMs: null };
}

type Provenance = Pick<Applied<License>, 'epoch' | 'revision' | 'appliedRevision'>;

/** The body of a request to the change feed. */
type ChangesBody = {
  agent: string;
  epoch: string | null;
  cursor: string | null;
  follow: string[];
  unfollow: string[];
  watch?: string[];
  carried_out?: string;
  wait: number;
};

function onTheWire({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt }: License): object {
  const date = new Date(createdAt).toISOString();
  return {
    license_key: licenseKey,
    product_link: productKey,
    buyer_email: buyerEmail,
    uses,
    enabled,
    date,
  };
}

/** What makes a vendor in memory a Latchkey: keys, revisions, an epoch, and a change feed, which answers after 20 ms. */
export class LatchkeyVendor implements SyncUpstream {
  /** The first 16 digits name the store. */
  epoch: string = '0123456789abcdef'.repeat(2);
  /** The requests to the change feed, in order. */
  readonly asked: string[] = [];
  /** The keyed requests that arrived, in order. */
  readonly keyed: (Keyed & { kind: LicenseOperationKind; licenseKey: string })[] = [];
  /** Replaces a request to the change feed, which is not carried out. */
  instead: (what: string) => Outcome<never> | null = () => null;
  /** The revisions at which operations were carried out, by their ids; 0: without effect. */
  readonly answers: Map<string, number> = new Map<string, number>();
  /** A gateway before the upstream removes the ids: no answer is stored. */
  hidesIds = false;
  /** The last removal of answers: nothing is known about older operations (epoch ms). */
  prunedBefore = 0;
  /** By agent: what it follows. */
  readonly #followed = new Map<string, Set<string>>();
  readonly #revisions = new Map<string, { revision: number; disabled: number }>();
  readonly #changedAt = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  readonly #vendor: Vendor;
  readonly #clock: VirtualClock;
  #number = 0;

  constructor(vendor: Vendor, clock: VirtualClock) {
    this.#vendor = vendor;
    this.#clock = clock;
  }

  /** The license keys that each request for changes watched, in order. */
  readonly watched: (readonly string[])[] = [];

  /** Sells a license. */
  sell(licenseKey: string): void {
    const rest = { productKey: 'link', buyerEmail: 'b@example.com', uses: 0, enabled: true, createdAt: 0 };
    this.#put({ licenseKey, ...rest }, 'enable');
  }

  /** Changes a license as a seller does. */
  set(licenseKey: string, trigger: LicenseTrigger): void {
    this.#put(licenseAfter(this.#license(licenseKey), trigger), trigger);
  }

  /** Another history of the same store: it was restored. */
  restore(): void {
    this.epoch =
      this.epoch.slice(0, 16) +
      String(Number(this.epoch.slice(16).replaceAll(/\D/g, '')) + 1)
        .padStart(16, '0')
        .slice(-16);
  }

  /** A restore of an authority forgets when licenses were disabled. */
  forgetDisables(): void {
    for (const revisions of this.#revisions.values()) revisions.disabled = 0;
  }

  provenanceOf(licenseKey: string): Provenance {
    return { epoch: this.epoch, revision: this.#revisions.get(licenseKey)?.revision ?? 0 };
  }

  /** Carries a keyed change out, once. */
  carryOut({ licenseKey, kind, keyed }: UpstreamChange): NotApplied | Provenance {
    if (keyed === undefined) throw new Error('an agent sends no change to a Latchkey without its id');
    this.keyed.push({ ...keyed, kind, licenseKey });
    if (keyed.epoch !== null && keyed.epoch.slice(0, 16) !== this.epoch.slice(0, 16))
      return refusedWith('other_store');
    const before = this.answers.get(keyed.id);
    if (before === undefined) {
      if (keyed.isRepeat && keyed.createdAt < this.prunedBefore) return refusedWith('too_old_to_know');
      const license = this.#license(licenseKey);
      const { disabled } = this.#revisions.get(licenseKey) ?? { disabled: 0 };
      if (
        kind === 'enable' &&
        !license.enabled &&
        keyed.seenRevision !== null &&
        disabled > keyed.seenRevision
      )
        return refusedWith('license_revoked');
      const after = licenseAfter(license, kind);
      const isSame = after.uses === license.uses && after.enabled === license.enabled;
      this.answers.set(keyed.id, isSame ? 0 : this.#put(after, kind));
    }
    const applied = this.hidesIds ? 0 : (this.answers.get(keyed.id) ?? 0);
    if (this.hidesIds) this.answers.delete(keyed.id);
    return { ...this.provenanceOf(licenseKey), ...(applied > 0 && { appliedRevision: applied }) };
  }

  probe(_: string, signal: AbortSignal): Promise<Outcome<null>> {
    return this.#answer('probe', signal, () => null);
  }

  /** A request to the change feed. */
  async ask<Value>(
    _: string,
    { body, read }: LatchkeyRequest<Value>,
    signal: AbortSignal,
  ): Promise<Outcome<Value>> {
    const request = JSON.parse(body) as ChangesBody;
    const { agent, watch = [], carried_out: carriedOut } = request;
    this.watched.push(watch);
    // A real upstream was restarted with another epoch, which ended its requests.
    const { epoch } = this;
    const isReset = request.epoch !== null && request.epoch !== epoch;
    const followed = this.#followed.get(agent) ?? new Set();
    if (isReset) followed.clear();
    this.#followed.set(agent, followed);
    for (const key of request.unfollow) followed.delete(key);
    if (!isReset) for (const key of request.follow) followed.add(key);
    const since = isReset ? 0 : Number(request.cursor ?? 0);
    const appeared = (): string[] => watch.filter((key) => this.#vendor.licenses.has(key));
    const isNews = (): boolean =>
      appeared().length > 0 || [...followed].some((key) => (this.#changedAt.get(key) ?? 0) > since);
    const isPutBack = carriedOut !== undefined && !this.answers.has(carriedOut);
    if (request.wait > 0 && !isPutBack && !isNews()) await this.#waitForChange(request.wait * 1000, signal);
    if (epoch !== this.epoch) return lostAnswer;
    const answered = await this.#answer('changes', signal, () => {
      const keys = [...followed].filter(
        (key) => request.follow.includes(key) || (this.#changedAt.get(key) ?? 0) > since,
      );
      const licenses = keys.flatMap((key) => this.#vendor.licenses.get(key) ?? []);
      return {
        epoch: this.epoch,
        cursor: String(this.#number),
        confirmed_at: new Date(this.#clock.now()).toISOString(),
        changes: licenses.map((license) => ({
          license_key: license.licenseKey,
          revision: this.#revisions.get(license.licenseKey)?.revision ?? 0,
          license: onTheWire(license),
        })),
        absent: keys.filter((key) => !this.#vendor.licenses.has(key)),
        appeared: appeared(),
        ...(isReset && { reset: true }),
        ...(isPutBack && { put_back: true }),
      };
    });
    if (answered.outcome !== 'applied') return answered;
    const parsed = read({ data: answered.value });
    if ('fault' in parsed) throw new Error(parsed.fault);
    return { ...answered, value: parsed.value };
  }

  #license(licenseKey: string): License {
    const license = this.#vendor.licenses.get(licenseKey);
    if (license === undefined) throw new Error(`there is no ${licenseKey}`);
    return license;
  }

  /** Returns the new revision. */
  #put(license: License, trigger: LicenseTrigger): number {
    const { licenseKey } = license;
    this.#vendor.licenses.set(licenseKey, license);
    this.#number += 1;
    this.#changedAt.set(licenseKey, this.#number);
    const before = this.#revisions.get(licenseKey) ?? { revision: 0, disabled: 0 };
    const revision = before.revision + 1;
    const isDisable = trigger === 'disable' || trigger === 'refund';
    this.#revisions.set(licenseKey, { revision, disabled: isDisable ? revision : before.disabled });
    for (const wake of this.#waiting) wake();
    return revision;
  }

  async #waitForChange(ms: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    this.#waiting.add(end);
    signal.addEventListener('abort', end, { once: true });
    await this.#clock.sleep(ms, ending.signal).catch(() => undefined);
    this.#waiting.delete(end);
  }

  async #answer<Value>(what: string, signal: AbortSignal, work: () => Value): Promise<Outcome<Value>> {
    this.asked.push(what);
    await this.#clock.sleep(20, signal).catch(() => undefined);
    if (signal.aborted) return lostAnswer;
    const early = this.instead(what);
    if (early !== null) return early;
    const value = work();
    const confirmedAt = this.#clock.now();
    return { outcome: 'applied', value, confirmedAt, isCached: false, epoch: this.epoch };
  }
}
