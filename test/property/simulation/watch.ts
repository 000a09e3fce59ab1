import { reconcileAfterMs, isChange, type Observer, type Sender, type Sent } from './network.ts';

const queueOf = {
  usage: 'counter',
  decrease: 'counter',
  enable: 'state',
  disable: 'state',
  create_coupon: 'coupon',
} as const;

/** Looks at every request as it leaves: nothing is sent unmarked, into a reconcile delay, or before it is welcome. */
export class Watch implements Observer {
  /** What was found broken. */
  readonly broken: string[] = [];
  /** All requests that were sent, whether or not they arrived. */
  readonly sent: Sent[] = [];
  /** By queue: requests that may still arrive. */
  readonly #uncertain = new Map<string, Sent[]>();
  /** Until when the upstream asked to be left alone, in ms of virtual time, since when, and whom it told. */
  #wait: { from: number; until: number; told: Sender } | null = null;

  /** The end of `Retry-After`, in ms of virtual time. */
  get notBefore(): number {
    return this.#wait?.until ?? 0;
  }

  onSend(sent: Sent, sender: Sender): void {
    this.sent.push(sent);
    this.#checkWait(sent, sender);
    if (!isChange(sent)) return;
    if (sent.origin.operation === null) this.#report('invariant 1', sent, 'is sent unmarked');
    const name = queueName(sent);
    const uncertain = (this.#uncertain.get(name) ?? []).filter(({ at }) => sent.at < at + reconcileAfterMs);
    const overtaken = uncertain.find(({ what }) => !(what === 'disable' && sent.what === 'disable'));
    if (overtaken !== undefined) {
      this.#report(
        'the reconcile delay',
        sent,
        `is sent ${sent.at - overtaken.at} ms after a ${overtaken.what}`,
      );
    }
    // Until its answer is there it is as uncertain as if that were lost.
    this.#uncertain.set(name, [...uncertain, sent]);
  }

  onResponse(sent: Sent, waitMs: number | null, sender: Sender, now: number): void {
    if (sent.settled && isChange(sent)) {
      const name = queueName(sent);
      const others = this.#uncertain.get(name)?.filter((other) => other !== sent);
      this.#uncertain.set(name, others ?? []);
    }
    if (waitMs === null || sender.isDead || now + waitMs <= this.notBefore) return;
    this.#wait = { from: now, until: now + waitMs, told: sender };
  }

  #checkWait(sent: Sent, sender: Sender): void {
    const wait = this.#wait;
    // What left in the instant of the answer left before it was heard; who died of it may have forgotten it.
    if (wait === null || sent.at >= wait.until || sent.at <= wait.from || wait.told !== sender) return;
    this.#report('Retry-After', sent, `is sent ${wait.until - sent.at} ms too early`);
  }

  #report(rule: string, { what, subject, at }: Sent, how: string): void {
    this.broken.push(`${rule}: a ${what} of ${subject} ${how} (at ${at})`);
  }
}

/** The queue, whichever of the agent's stores sent: what an unknown history sent is on its way all the same. */
function queueName({ what, subject }: Sent): string {
  return `${subject} ${queueOf[what as keyof typeof queueOf]}`;
}
