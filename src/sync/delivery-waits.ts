import type { Clock, Deliveries } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { Uplink } from './uplink/uplink.ts';
import { Wake } from './wake.ts';

export type DeliveryWaitsParts = {
  reader: Reader;
  clock: Clock;
  uplink: Uplink;
  /** Ends every wait. */
  lifetime: AbortSignal;
};

/** Callers who wait for what becomes of their operation. */
export class DeliveryWaits implements Pick<Deliveries, 'settled'> {
  readonly #parts: DeliveryWaitsParts;
  readonly #looks = new Set<() => void>();

  constructor(parts: DeliveryWaitsParts) {
    this.#parts = parts;
  }

  /** Something of the outbox moved, or of the way up: each looks whether its wait is over. */
  look(): void {
    for (const look of this.#looks) look();
  }

  async settled(
    operationId: string,
    { waitMs, untilFailure }: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, lifetime } = this.#parts;
    const deadline = clock.steady() + waitMs;
    const leaving = AbortSignal.any([signal, lifetime]);
    const wake = new Wake(clock);
    const look = (): void => wake.up();
    this.#looks.add(look);
    try {
      while (!this.#isSettled(operationId, untilFailure) && clock.steady() < deadline && !leaving.aborted) {
        await wake.wait(deadline - clock.steady(), leaving);
      }
    } finally {
      this.#looks.delete(look);
    }
  }

  #isSettled(operationId: string, untilFailure: boolean): boolean {
    const { reader, uplink } = this.#parts;
    const operation = reader.operations.get(operationId);
    if (operation === null) return true;
    const { progress } = operation;
    if (progress.state === 'in_flight') return false;
    if (progress.state !== 'pending') return progress.state !== 'uncertain' || untilFailure || progress.held;
    const stuck = !uplink.isAccepted(operation.productKey);
    return untilFailure && (operation.failures > 0 || stuck || !uplink.admission().admitted);
  }
}
