import { dayMs } from '../../../domain/time.ts';
import { askDoctor, type Checks, endChecks, msUntil, some } from '../../../wire/check.ts';
import { keyEndsSoonMs } from '../domain/lease.ts';

/** A lease that ends this soon, while the issuer does not renew it, is urgent, in ms. */
const urgentMs = 7 * dayMs;

/** At an issuer, and at a holder. */
export const leaseChecks: Checks = {
  ...endChecks('signing_key', {
    what: 'the last signing key of leases',
    endOf: ({ issuer }) => issuer?.not_after,
    ended: 'devices get no leases',
    soonMs: keyEndsSoonMs,
    advice: 'make the next signing key',
    command: 'lease signing-key rotate --root FILE',
  }),
  leases_ended: {
    level: 'fail',
    find: ({ leases, records }) => {
      const ended = leases && some(records?.expired, 'lease has ended', 'leases have ended');
      return ended && `${ended}: programs get no license from them`;
    },
    ...askDoctor,
    isExamined: true,
  },
  issuer_unavailable: {
    level: (status) => (msUntil(status.leases?.next_end, status) < urgentMs ? 'fail' : 'warn'),
    find: ({ leases }) => {
      if (leases === null || leases.last_error === null) return null;
      const { issuer, last_error_at: failed, last_success_at: success, next_end: end } = leases;
      const first = end === null ? '' : `, of which the first ends on ${end}`;
      const isOver = Date.parse(failed ?? '') <= Date.parse(success ?? '');
      return !isOver && `the issuer ${issuer} does not renew leases${first}: ${leases.last_error}`;
    },
    ...askDoctor,
    isExamined: true,
  },
};
