import type { Activation, HeldLease } from '../domain/lease.ts';
import type { Page } from '../../../domain/page.ts';
import type { Search } from '../../../domain/search.ts';
import type { TenantFilter } from '../../../domain/access/principal.ts';
import type { End, ReportedEnd } from '../../../domain/time.ts';

/** Undefined members do not filter. */
export type ActivationFilter = TenantFilter & {
  productKey?: string | undefined;
  licenseKey?: string | undefined;
  state?: Activation['state'] | undefined;
  /** Only activations whose seat is taken at this instant (epoch ms). */
  seatAt?: number | undefined;
  /** Only activations that are marked as copied. */
  copied?: boolean | undefined;
  /** In the license key, in the name of the device or in the e-mail address of the buyer. */
  search?: Search | undefined;
};

/** The devices that have asked for seats, at an issuer: an authority or an agent. */
export interface ActivationReads {
  get(activationId: string): Activation | null;
  ofDevice(licenseKey: string, device: string): Activation | null;
  /** The ids of the active ones of a license. */
  activeOf(licenseKey: string): string[];
  /** All activations of a license, latest renewal first. */
  ofLicense(licenseKey: string, limit: number): Activation[];
  /** How many seats of the license other activations take at an instant (epoch ms). */
  seatsTaken(licenseKey: string, at: number, exceptActivation: string): number;
  /** How many seats of the license were freed at once since an instant (epoch ms). */
  movesSince(licenseKey: string, since: number): number;
  /** Active ones whose last lease ends after another end and until an instant. */
  expiring(after: ReportedEnd, until: number, limit: number): End[];
  list(filter: ActivationFilter, page: Page): Activation[];
  count(filter: ActivationFilter): number;
}

export interface ActivationTable extends ActivationReads {
  /** Locks the license until the end of the transaction, so that its seats are counted one request after another. */
  lockLicense(licenseKey: string): void;
  /** Adds or replaces the activation. */
  put(activation: Activation): void;
  /**
   * Removes the activations of a license without a seat, except the latest `keep` of them, blocked devices, and devices
   * whose seat was freed at once within `movesWithinMs`, because such moves count.
   */
  pruneEnded(licenseKey: string, keep: number, now: number): void;
  /**
   * Moves activations to another spelling of their license key (on an agent). A device that has an activation of both
   * spellings keeps the one whose seat is taken for longer.
   */
  changeKey(from: string, to: string): void;
  /**
   * Lets another license key have the devices and seats of a license. Each device has a new row, named after `id`, and no
   * request yet; its former row has no seat, and answers requests with the former key.
   */
  copyToKey(from: string, to: string, id: string): void;
  /** Ends all activations of a license, and frees their seats at an instant, also beyond the moves. */
  endAll(licenseKey: string, at: number): void;
  /** Removes the names of the devices of licenses; returns their activations. */
  removeNames(licenseKeys: readonly string[]): string[];
  /** Removes an e-mail address from the last answers to the devices of licenses. */
  removeEmail(licenseKeys: readonly string[], email: string): void;
  /**
   * Forgets the last requests of all devices (on an agent). Each device then answers a challenge, and reports again what is
   * not in the totals.
   */
  forgetRequests(): void;
}

/** The leases of a holder. */
export interface HeldLeaseReads {
  get(licenseKey: string): HeldLease | null;
  all(): HeldLease[];
  count(): number;
}
export interface HeldLeaseTable extends HeldLeaseReads {
  put(held: HeldLease): void;
  remove(licenseKey: string): void;
}

declare module '../../../service/tables.ts' {
  interface Reader {
    activations: ActivationReads;
    heldLeases: HeldLeaseReads;
  }
  interface Transaction {
    activations: ActivationTable;
    heldLeases: HeldLeaseTable;
  }
  interface AgentTablesOfFeatures {
    heldLeases: true;
  }
  interface ListsOfFeatures {
    activations: true;
  }
}
