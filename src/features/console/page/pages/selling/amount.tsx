import { useDaemon } from '../../daemon.tsx';
import { money } from './money.ts';

export function Money({ cents }: { cents: number }) {
  return <>{money(cents, useDaemon().currency)}</>;
}

/** ` in EUR`. */
export function InCurrency() {
  const { currency } = useDaemon();
  return <>{currency !== null && ` in ${currency}`}</>;
}
