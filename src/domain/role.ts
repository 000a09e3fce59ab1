/**
 * The role of a process and its store. An authority owns licenses; an agent holds snapshots of its upstream's licenses; a
 * holder has leases for the device that it runs on.
 */
export type RoleName = 'authority' | 'agent' | 'holder';

export const roleWithArticle: Readonly<Record<RoleName, string>> = {
  authority: 'an authority',
  agent: 'an agent',
  holder: 'a holder',
};

/** What makes a configuration that of a role. */
export const roleMark: Readonly<Record<RoleName, string>> = {
  authority: 'no upstream',
  agent: 'an upstream',
  holder: 'leases.issuer',
};
