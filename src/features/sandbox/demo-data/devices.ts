import { hash } from 'node:crypto';
import { noUses, type LeaseRequest } from '../../leases/domain/lease.ts';
import { dayMs, hourMs } from '../../../domain/time.ts';
import type { DemoEvent, SeededRandom, PastWriter } from './past-writer.ts';
import { demoBuyer, type Buyer } from './shop.ts';

/** A license of the demo shop. Times are epoch ms; `refundedAt`: null if it was not refunded. */
export type Sale = Buyer & {
  licenseKey: string;
  productKey: string;
  soldAt: number;
  refundedAt: number | null;
};

type Devices = { writer: PastWriter; random: SeededRandom; end: number };

/** The devices on which a customer activates a license. */
export function deviceEvents(devices: Devices, sale: Sale): DemoEvent[] {
  if (sale.licenseKey === demoBuyer.licenseKey) return fullLicense(devices, sale);
  const { random, end } = devices;
  if (sale.refundedAt !== null || !random.chance(0.4)) return [];
  return Array.from({ length: random.whole(1, 3) }, (_, index) => {
    const takenAt =
      sale.soldAt + Math.round((0.01 + index * random.fraction()) * Math.min(40 * dayMs, end - sale.soldAt));
    return deviceUse(devices, sale, {
      name: deviceName(random, sale.name, index),
      takenAt,
      isKept: random.chance(0.8),
    });
  }).flat();
}

/** Three devices have the three seats; an older one has given its seat back. */
function fullLicense(devices: Devices, sale: Sale): DemoEvent[] {
  const after = (days: number): number => sale.soldAt + days * dayMs;
  return [
    deviceUse(devices, sale, {
      name: 'Ines – old iMac',
      takenAt: after(0.1),
      isKept: false,
      endedAt: after(31),
    }),
    deviceUse(devices, sale, { name: 'Ines – MacBook Air', takenAt: after(0.5), isKept: true }),
    deviceUse(devices, sale, { name: 'Ines – studio iMac', takenAt: after(32), isKept: true }),
    deviceUse(devices, sale, { name: 'Léo – ThinkPad X1', takenAt: after(58), isKept: true }),
  ].flat();
}

const kinds = ['MacBook', 'desktop', 'laptop', 'Surface', 'iMac', 'workstation'] as const;

function deviceName(random: SeededRandom, name: string, index: number): string {
  const kind = random.pick(kinds);
  return index === 0 ? `${name}’s ${kind}` : `${kind} ${random.whole(1, 40)}`;
}

type DeviceUse = { name: string; takenAt: number; isKept: boolean; endedAt?: number };

/** A device takes a seat, and renews its lease until today or for some weeks. */
function deviceUse(
  { writer, random, end }: Devices,
  sale: Sale,
  { name, takenAt, isKept, endedAt }: DeviceUse,
): DemoEvent[] {
  const device = hash('sha256', `${sale.licenseKey} ${name} ${takenAt}`, 'base64url');
  let seq = 0;
  const ask = (act: LeaseRequest['act']) => async (at: number) => {
    seq += 1;
    const request = {
      act,
      productKey: sale.productKey,
      licenseKey: sale.licenseKey,
      seq,
      challenge: null,
      nonce: null,
      deviceName: name,
      replaces: null,
      activationId: null,
      uses: noUses,
    };
    const signedRequest = { request, device, digest: hash('sha256', `${device} ${seq}`) };
    const command = {
      signedRequest,
      keyNotAfter: end + 400 * dayMs,
      until: null,
      isFile: false,
      accountId: null,
    };
    await writer.run('answerLeaseRequest', command, { at });
  };
  const events: DemoEvent[] = [{ at: takenAt, run: ask('take') }];
  if (endedAt !== undefined) return [...events, { at: endedAt, run: ask('end') }];
  const renewals = isKept ? (end - takenAt) / (20 * dayMs) : 1;
  for (let renewal = 1; renewal < renewals; renewal += 1)
    events.push({ at: takenAt + renewal * 20 * dayMs, run: ask('renew') });
  const last = end - Math.round((0.1 + random.fraction() * 20) * hourMs);
  if (isKept && last > takenAt) events.push({ at: last, run: ask('renew') });
  return events;
}
