import { readFileSync } from 'node:fs';
import { ListenError } from '../../http/listen.ts';

/**
 * The number of a group that is given by name or number. Node cannot ask the system's directories: a group
 * that only they know has to be given by its number.
 */
export function groupNumber(group: string): number {
  if (/^\d{1,10}$/.test(group)) return Number(group);
  for (const line of readGroups().split('\n')) {
    const [name, , number = ''] = line.split(':');
    if (name === group && /^\d+$/.test(number)) return Number(number);
  }
  throw new ListenError('refused', `there is no group ${group} in /etc/group: give its number instead`);
}

function readGroups(): string {
  try {
    return readFileSync('/etc/group', 'utf8');
  } catch {
    return '';
  }
}
