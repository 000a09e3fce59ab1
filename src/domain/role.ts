/** The role of a process and its store. An authority owns licenses; an agent holds snapshots of its upstream's licenses. */
export type RoleName = 'authority' | 'agent';
